//! Any text is a placement problem or an error; every placement of a problem passes the checker.
#![cfg_attr(fuzzing, no_main)]

use minfer_memplan::{Strategy, check_certificate, csv, place};

/// More buffers only make a run slower.
const MAX_BUFFERS: usize = 64;

fn body(data: &[u8]) {
    let Ok(table) = csv::read(&String::from_utf8_lossy(data)) else {
        return;
    };
    if table.problem.buffers.len() > MAX_BUFFERS {
        return;
    }
    for strategy in [Strategy::Naive, Strategy::Pool, Strategy::Planned] {
        if let Ok(placed) = place(&table.problem, strategy) {
            assert_eq!(check_certificate(&table.problem, &placed), Ok(()));
            let text = csv::write(&table, Some(&placed.placement.offsets)).expect("a table that was read");
            assert_eq!(csv::read(&text).expect("a table that was written").ids, table.ids);
        }
    }
}

minfer_fuzz::target!("memplan_csv", body);
