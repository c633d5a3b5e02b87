use super::*;
use std::sync::atomic::AtomicUsize;

const STACK: usize = 256 << 10;

#[test]
fn every_worker_runs_and_meets() {
    for threads in [1, 2, 3, 8] {
        let mut pool = Pool::new(threads, STACK).unwrap();
        for _ in 0..50 {
            let before = AtomicUsize::new(0);
            let wrong = AtomicUsize::new(0);
            pool.run(&|_, barrier| {
                for round in 1..=5 {
                    before.fetch_add(1, SeqCst);
                    barrier.wait(|| ());
                    if before.load(SeqCst) != round * threads {
                        wrong.fetch_add(1, SeqCst);
                    }
                    barrier.wait(|| ());
                }
            });
            assert_eq!((before.load(SeqCst), wrong.load(SeqCst)), (5 * threads, 0));
        }
    }
}

#[test]
fn oversubscription_does_not_hang() {
    let threads = 4 * std::thread::available_parallelism().map_or(1, usize::from) + 3;
    let mut pool = Pool::new(threads, STACK).unwrap();
    let count = AtomicUsize::new(0);
    for _ in 0..20 {
        pool.run(&|_, barrier| {
            for _ in 0..10 {
                count.fetch_add(1, SeqCst);
                barrier.wait(|| ());
            }
        });
    }
    assert_eq!(count.load(SeqCst), 200 * threads);
}

#[test]
fn a_caught_panic_leaves_the_pool_usable() {
    let mut pool = Pool::new(3, STACK).unwrap();
    let caught = AtomicUsize::new(0);
    pool.run(&|index, barrier| {
        if catch(|| assert!(index != 1, "on purpose")).is_err() {
            caught.fetch_add(1, SeqCst);
        }
        barrier.wait(|| ());
    });
    assert_eq!(caught.load(SeqCst), 1);
    pool.run(&|_, _| {
        caught.fetch_add(1, SeqCst);
    });
    assert_eq!(caught.load(SeqCst), 4);
}

#[test]
fn idle_workers_sleep() {
    let mut pool = Pool::new(3, STACK).unwrap();
    pool.run(&|_, _| ());
    // Spinning ends after a bounded number of rounds, so both workers come to sleep however slow the machine is.
    while pool.shared.start.sleepers.load(SeqCst) < 2 {
        std::thread::yield_now();
    }
    let ran = AtomicUsize::new(0);
    pool.run(&|_, _| {
        ran.fetch_add(1, SeqCst);
    });
    assert_eq!(ran.load(SeqCst), 3);
}
