//! Every expression of real event tables can be read: of all metrics and thresholds in the folder
//! that `RECREP_EVENT_TABLES` names (`tools/perf/pmu-events/arch` of the source of Linux).

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use recrep_counts::{Facts, Formula};
use serde_json::Value;

/// The metrics of a folder, by their names in small letters.
#[derive(Default)]
struct Folder {
    metrics: HashMap<String, String>,
}

impl Facts for Folder {
    fn literal(&self, _: &str) -> Option<f64> {
        Some(2.0)
    }

    fn has_event(&self, _: &str) -> bool {
        true
    }

    fn is_cpu(&self, _: &str) -> Option<bool> {
        Some(true)
    }

    fn metric(&self, name: &str) -> Option<String> {
        self.metrics.get(&name.to_lowercase()).cloned()
    }
}

/// Returns the folders below, and itself.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let inner = entries.filter(|path| path.is_dir()).flat_map(|path| folders(&path));
    [folder.to_owned()].into_iter().chain(inner).collect()
}

/// Returns the entries with an expression in a folder's files.
fn entries(folder: &Path) -> Vec<Value> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let tables = files.filter(|path| path.extension().is_some_and(|end| end == "json"));
    let entries = tables.flat_map(|path| {
        let table: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        table.as_array().cloned().unwrap_or_default()
    });
    entries.filter(|entry| entry["MetricExpr"].is_string()).collect()
}

#[test]
fn every_expression_of_real_tables() {
    let Some(tables) = std::env::var_os("RECREP_EVENT_TABLES") else {
        println!("did not run: RECREP_EVENT_TABLES is not set");
        return;
    };
    let (mut expressions, mut thresholds, mut circles) = (0, 0, 0);
    for path in folders(Path::new(&tables)) {
        let entries = entries(&path);
        let mut folder = Folder::default();
        for entry in &entries {
            let name = entry["MetricName"].as_str().or_else(|| entry["ArchStdEvent"].as_str());
            let expression = entry["MetricExpr"].as_str().unwrap();
            folder.metrics.insert(name.unwrap().to_lowercase(), expression.to_owned());
        }
        for entry in &entries {
            let name = entry["MetricName"].as_str().or_else(|| entry["ArchStdEvent"].as_str());
            let (name, expression) = (name.unwrap(), entry["MetricExpr"].as_str().unwrap());
            expressions += 1;
            let formula = match Formula::new(name, expression, &folder) {
                Ok(formula) => formula,
                // perf's own tests have some.
                Err(error) if error.why.contains("in a circle") && path.ends_with("cpu") => {
                    circles += 1;
                    continue;
                }
                Err(error) => panic!("{}: {error}", path.display()),
            };
            if let Some(condition) = entry["MetricThreshold"].as_str() {
                thresholds += 1;
                if let Err(error) = formula.with_threshold(name, condition, &folder) {
                    panic!("{}: {error}", path.display());
                }
            }
        }
    }
    println!("{expressions} expressions, {thresholds} thresholds, {circles} circles");
    assert!(expressions > 0);
}
