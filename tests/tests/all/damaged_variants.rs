//! A thousand of the damaged variants (two with `RECREP_FULL=1`) that the program `recrep-damage`
//! makes by the ten thousands.

use recrep_fixtures::manifest::cases;
use recrep_fixtures::recorded;
use recrep_tests::campaign::{Campaign, originals};
use recrep_tests::forms::{forms, is_full};
use recrep_tests::needs;
use recrep_tests::programs::programs;
use recrep_tests::variants::Original;

#[track_caller]
fn assert_stood(originals: Vec<(String, Original)>, variants: u64) {
    let files = originals.len();
    let outcome = Campaign {
        rep: programs().rep.clone(),
        originals,
        numbers: 0..variants,
        jobs: 2,
        keep: None,
    }
    .run(|_| {});
    println!("{files} files\n{outcome}");
    assert!(outcome.broken.is_empty(), "{outcome}");
    assert!(outcome.ended.values().all(|[answered, _]| *answered > 0), "{outcome}");
}

#[test]
fn of_fixtures() {
    let made = cases().into_iter().flat_map(|case| {
        let forms = forms(&case, |_| true);
        forms.into_iter().map(move |form| (format!("{}.{form}", case.name), case.bytes(form)))
    });
    let found = recorded::ALL.iter().map(|file| (file.name.to_owned(), file.bytes.to_vec()));
    let originals: Vec<_> =
        made.chain(found).map(|(name, bytes)| (name, Original::new(bytes))).collect();
    assert_stood(originals, if is_full() { 2000 } else { 1000 });
}

#[test]
fn of_a_corpus() {
    let Some(folder) = needs::corpus() else { return };
    assert_stood(originals(&folder).unwrap(), if is_full() { 364 } else { 182 });
}
