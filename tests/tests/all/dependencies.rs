//! The dependencies are what `deny.toml` allows: their licences, their sources, one version of
//! each. `cargo deny` checks the same, and advisories, where it is installed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;
use std::sync::OnceLock;

use recrep_tests::programs::workspace;
use recrep_tests::run::run;
use serde::Deserialize;
use spdx::{Expression, ParseMode};

#[derive(Deserialize)]
struct Deny {
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
    exceptions: Vec<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Bans {
    multiple_versions: String,
    wildcards: String,
    skip: Vec<Named>,
    deny: Vec<Named>,
}

/// A crate, perhaps with a version, and the reason for naming it.
#[derive(Deserialize)]
struct Named {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    unknown_registry: String,
    unknown_git: String,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Clone, Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// `None` for the packages of the workspace.
    source: Option<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Clone, Deserialize)]
struct Dependency {
    name: String,
    req: String,
    path: Option<String>,
}

fn deny() -> Deny {
    toml::from_str(&fs::read_to_string(workspace().join("deny.toml")).unwrap()).unwrap()
}

/// The packages that are built on this machine: with all features, or where their crates are not at
/// hand, with those that the tests are built with.
fn packages() -> &'static [Package] {
    static PACKAGES: OnceLock<Vec<Package>> = OnceLock::new();
    PACKAGES.get_or_init(|| {
        let version = run(Command::new("rustc").arg("-vV")).expect(0);
        let host =
            version.text().lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned();
        let asked = |features: &[&str]| {
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args([
                "metadata",
                "--format-version=1",
                "--offline",
                "--locked",
                "--filter-platform",
                &host,
            ]);
            run(cargo.args(features).current_dir(workspace()))
        };
        let all = asked(&["--all-features"]);
        let found = if all.code() == 0 { all } else { asked(&[]).expect(0) };
        let Metadata { packages } = serde_json::from_slice(&found.stdout).unwrap();
        assert!(packages.iter().filter(|package| package.source.is_none()).count() >= 5);
        packages
    })
}

/// Returns whether terms allow what the list has.
fn is_allowed(license: &str, allowed: &[String]) -> bool {
    let expression =
        Expression::parse_mode(license, ParseMode::LAX).unwrap_or_else(|error| panic!("{error}"));
    expression.evaluate(|term| allowed.contains(&term.to_string()))
}

#[test]
fn licences_are_allowed() {
    let Licenses { allow, exceptions } = deny().licenses;
    for Package { name, license, .. } in packages() {
        let license = license.as_ref().unwrap_or_else(|| panic!("{name} has no licence"));
        let own = exceptions
            .iter()
            .filter(|exception| exception.name == *name)
            .flat_map(|exception| &exception.allow);
        let allowed: Vec<String> = allow.iter().chain(own).cloned().collect();
        assert!(
            is_allowed(license, &allowed),
            "{name} is under {license}, which deny.toml does not allow"
        );
    }
    for Exception { name, .. } in exceptions {
        assert!(
            packages().iter().any(|package| package.name == name),
            "deny.toml has an exception for {name}"
        );
    }
    let only = |license: &str| vec![license.to_owned()];
    assert!(
        is_allowed("MIT/Apache-2.0", &only("MIT"))
            && is_allowed("(MIT OR GPL-2.0-only)", &only("MIT"))
    );
    assert!(
        !is_allowed("MIT AND GPL-2.0-only", &only("MIT")) && !is_allowed("MPL-2.0", &only("MIT"))
    );
    assert!(!is_allowed("Apache-2.0 WITH LLVM-exception", &only("Apache-2.0")));
}

#[test]
fn crates_are_released_ones_of_one_registry() {
    let Sources { unknown_registry, unknown_git } = deny().sources;
    assert_eq!([unknown_registry, unknown_git], ["deny", "deny"]);
    let sources: BTreeSet<_> =
        packages().iter().filter_map(|package| package.source.as_deref()).collect();
    assert!(
        sources.len() == 1 && sources.iter().all(|source| source.starts_with("registry+")),
        "{sources:?}"
    );
    for package in packages().iter().filter(|package| package.source.is_none()) {
        for Dependency { name, req, path } in &package.dependencies {
            assert!(path.is_some() || req != "*", "{} takes any version of {name}", package.name);
        }
    }
    assert_eq!(deny().bans.wildcards, "deny");
}

#[test]
fn crates_have_one_version_unless_a_reason_is_given() {
    let Bans { multiple_versions, skip, deny, .. } = deny().bans;
    assert_eq!(multiple_versions, "deny");
    let lock = fs::read_to_string(workspace().join("Cargo.lock")).unwrap();
    for Named { name, reason } in skip.iter().chain(&deny) {
        assert!(!reason.is_empty(), "{name} needs a reason");
    }
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for Package { name, version, .. } in packages() {
        let is_skipped = |named: &Named| {
            let (skipped, begin) = named.name.split_once('@').unwrap_or((&named.name, ""));
            skipped == name
                && version
                    .strip_prefix(begin)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if !skip.iter().any(is_skipped) {
            versions.entry(name).or_default().insert(version);
        }
        assert!(!deny.iter().any(|denied| denied.name == *name), "{name} is not wanted");
    }
    versions.retain(|_, versions| versions.len() > 1);
    assert!(versions.is_empty(), "more than one version: {versions:?}");
    for Named { name, .. } in &skip {
        let (name, begin) = name.split_once('@').unwrap();
        let entry = format!("name = \"{name}\"\nversion = \"{begin}.");
        assert!(lock.contains(&entry), "deny.toml skips {name} {begin}, which is no dependency");
    }
}

#[test]
fn each_dependency_of_the_workspace_is_used() {
    let manifest = |path: &str| -> toml::Table {
        fs::read_to_string(workspace().join(path).join("Cargo.toml")).unwrap().parse().unwrap()
    };
    let root = manifest("");
    let members = root["workspace"]["members"].as_array().unwrap();
    let mut used = BTreeSet::new();
    for member in members {
        let member = manifest(member.as_str().unwrap());
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            used.extend(
                member
                    .get(section)
                    .into_iter()
                    .flat_map(|table| table.as_table().unwrap().keys().cloned()),
            );
        }
    }
    let dependencies = root["workspace"]["dependencies"].as_table().unwrap();
    let unused: Vec<_> = dependencies.keys().filter(|name| !used.contains(*name)).collect();
    assert!(unused.is_empty(), "{unused:?} are dependencies of the workspace that no package uses");
}
