//! Functions of Go programs without symbol tables.

use recrep_report::testing::SymbolOptions;
use recrep_report::testing::{Module, ModuleKind, Resolver};

use super::*;

const GO: &str = "package main\n\
    import \"sort\"\n\
    var sink int\n\
    //go:noinline\n\
    func leaf(n int) int { for i := 0; i < n; i++ { sink ^= i }; return sink }\n\
    type List []int\n\
    //go:noinline\n\
    func (l *List) Sort() { sort.Ints(*l) }\n\
    func main() { l := List{3, leaf(2)}; l.Sort(); func() { leaf(l[0]) }() }\n";

/// Returns functions of a program, by their names, with their file offsets.
fn functions_of(program: &Path, names: &[&str]) -> Vec<(String, u64)> {
    names.iter().map(|name| ((*name).to_owned(), function(program, name).0)).collect()
}

#[test]
fn a_stripped_go_program_has_the_names_of_its_function_table() {
    if !needs::commands("go") {
        return;
    }
    let place = Place::new();
    let source = place.put("prog.go", GO);
    let build = |flags: &str, name: &str| {
        let program = place.at(name);
        let mut command = Command::new("go");
        let command =
            command.arg("build").args(flags.split_whitespace()).arg("-o").args([&program, &source]);
        let home = place.at("home");
        command
            .env("HOME", &home)
            .env("GOCACHE", home.join("cache"))
            .env("GO111MODULE", "off")
            .env("CGO_ENABLED", "0");
        run(command);
        program
    };
    // A program that can be loaded anywhere says in relocations where its code begins.
    for mode in ["exe", "pie"] {
        let whole = build(&format!("-buildmode={mode}"), &format!("{mode}-whole"));
        let stripped =
            build(&format!("-buildmode={mode} -ldflags=-s"), &format!("{mode}-stripped"));
        let names =
            ["main.main", "main.leaf", "main.(*List).Sort", "runtime.main", "runtime.mallocgc"];
        let module = Module::new(stripped.to_str().unwrap().as_bytes(), None, ModuleKind::File);
        let loaded = Resolver::new(SymbolOptions { trust_paths: true, ..SymbolOptions::default() })
            .load(&module);
        for (name, offset) in functions_of(&whole, &names) {
            let found = loaded.table.lookup(offset + 1);
            assert_eq!(
                found.map(|symbol| (symbol.start, symbol.name)),
                Some((offset, name.as_bytes())),
                "{mode}"
            );
        }
    }
}
