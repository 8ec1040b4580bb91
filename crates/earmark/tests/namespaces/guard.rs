//! Guards: what they undo when the process that changes a device is stopped, or one of them is
//! killed; and who says it when none is left.
//!
//! The device is an interface in a network namespace of its own.

use crate::support::{Directory, EARMARK, Ended, in_network, needs};

/// Shell functions: `gro` is a setting of the device, `guards` are the processes that guard it.
const FUNCTIONS: &str = "
    gro() { cat /sys/class/net/one/gro_flush_timeout; }
    guards() {
        for process in $(ls /proc | grep '^[0-9]*$'); do
            words=$(tr '\\0' ' ' 2>/dev/null < /proc/$process/cmdline || true)
            case $words in *\" guard $state \"*) echo $process;; esac
        done
    }
    await() { until \"$@\"; do sleep 0.02; done; }
    two() { [ $(guards | wc -l) = 2 ]; }
    none() { [ -z \"$(guards)\" ]; }
    replaced() { two && ! guards | grep -qx $1; }
    is() { [ $(gro) = $1 ]; }
    # The time of the change that waits for its confirmation is over.
    expire() { sed -i 's/\"until\": [0-9]*/\"until\": 1/' $state/*.journal; }
    change='gro-flush-timeout 20us'";

#[track_caller]
fn guarded(script: &str) -> Ended {
    let state = Directory::new();
    let path = state.path().display();
    let names = format!("state={path} EARMARK={EARMARK} measure='{MEASURE}'");
    in_network(&state, &format!("{names}; {FUNCTIONS}\n{script}"))
}

/// Measures until the trial is undone, or there is a file `go`.
const MEASURE: &str = "until [ $(cat /sys/class/net/one/gro_flush_timeout) -le 7000 ] || \
    [ -e go ]; do sleep 0.01; done; echo 1";

/// Starts a tune, and waits until it is in a trial that does not end by itself.
const TUNE: &str = "earmark apply one gro-flush-timeout 7us >/dev/null
    $EARMARK tune one --command \"$measure\" >/dev/null & tune=$!
    until [ $(gro) -gt 7000 ]; do sleep 0.01; done";

#[test]
fn a_tune_that_is_stopped_has_its_device_put_back_and_fails_when_it_goes_on() {
    needs!("network");
    let ended = guarded(&format!(
        "{TUNE}
         kill -STOP $tune
         await is 7000; echo put back
         touch go; kill -CONT $tune; wait $tune || echo status $?
         gro; await none"
    ));
    assert_eq!(ended.output(), "put back\nstatus 1\n7000\n", "{ended:?}");
    for words in [
        "one is as it was, since `earmark tune`, process",
        "earmark: one was put back as it was while this process was stopped",
    ] {
        assert!(ended.stderr.contains(words), "no `{words}` in {ended:?}");
    }
}

#[test]
fn a_tune_whose_guard_is_killed_undoes_its_trial_itself_and_one_that_is_stopped_goes_on() {
    needs!("network");
    let ended = guarded(&format!(
        "{TUNE}
         kill -KILL $(guards); touch go; wait $tune || echo status $?; gro; rm go
         {TUNE}
         kill -STOP $(guards); touch go; wait $tune; gro; await none"
    ));
    assert_eq!(ended.output(), "status 1\n7000\n7000\n", "{ended:?}");
    assert!(
        ended.stderr.contains("the guard that undoes changes has ended (signal: 9 (SIGKILL))"),
        "{ended:?}"
    );
}

#[test]
fn of_two_guards_that_wait_each_starts_the_other_again() {
    needs!("network");
    let ended = guarded(
        "earmark apply --confirm-within 600s one $change >/dev/null
         for guard in $(guards); do kill -9 $guard; await replaced $guard; done
         earmark apply --dry-run one gro-flush-timeout 1us >/dev/null; gro
         earmark confirm one; gro
         await none; earmark rollback; gro",
    );
    let words = "20000\none: kept; way back: earmark rollback one\n20000\n\
                 one is as it was: gro-flush-timeout 0\n0\n";
    assert_eq!((ended.output(), ended.stderr.as_str()), (words, ""), "{ended:?}");
}

#[test]
fn a_change_without_confirmation_is_undone_though_a_guard_was_killed_or_stopped() {
    needs!("network");
    let ended = guarded(
        "for signal in KILL STOP; do
             for which in 1 2; do
                 earmark apply --confirm-within 2s one $change >/dev/null
                 # On a busy machine it may all be over by now.
                 guard=$(guards | sed -n ${which}p); kill -$signal $guard 2>/dev/null || true
                 await is 0
                 kill -CONT $guard 2>/dev/null || true
                 await none; ls $state | grep journal || echo undone
             done
         done",
    );
    assert_eq!(ended.output(), "undone\n".repeat(4), "{ended:?}");
}

#[test]
fn a_guard_that_is_killed_at_any_step_of_its_undoing_is_followed_by_the_other() {
    needs!("network");
    let ended = guarded(
        "is_undone() { is 0 && ! ls $state | grep -q journal; }
         for step in 1 2 3 4 5 6 7 8; do
             export EARMARK_KILL_GUARD_AT=$step
             earmark apply --confirm-within 0.1 one $change >/dev/null
             await is_undone; await none
         done",
    );
    assert_eq!(ended.output(), "", "{ended:?}");
}

#[test]
fn every_command_says_what_is_overdue_and_the_next_change_undoes_it() {
    needs!("network");
    for end in ["STOP", "KILL"] {
        // Stopped first, so that neither starts the other one again.
        let ended = guarded(&format!(
            "earmark apply --confirm-within 600s one $change >/dev/null
             guards=$(guards); kill -STOP $guards; kill -{end} $guards
             {EARMARK} watch one --interval 0.01 >/dev/null 2>watched & watch=$!
             expire
             await grep -q 'in force' watched; kill $watch
             for command in 'show one' 'watch one --count 1 --interval 0.01' 'exporter --print' \
                            'nic labs' scenario 'probe --replay none' 'persist none --remove'; do
                 earmark $command >said 2>&1 || true
                 echo $command: $(grep -c 'one: a change .* in force' said || true)
             done
             earmark exporter --print 2>/dev/null | grep ^earmark_changes_overdue
             earmark apply --dry-run one gro-flush-timeout 1us 2>&1; gro
             kill -CONT $guards 2>/dev/null || true; await none
             earmark exporter --print | grep ^earmark_changes_overdue"
        ));
        let words = "show one: 1\nwatch one --count 1 --interval 0.01: 1\nexporter --print: 1\n\
            nic labs: 1\nscenario: 1\nprobe --replay none: 1\npersist none --remove: 0\n\
            earmark_changes_overdue 1\n\
            one: a change that was not confirmed was left in force, for its guards were stopped or \
            killed; that is undone\n\
            one: would be: gro-flush-timeout 0ns -> 1000ns\n0\nearmark_changes_overdue 0\n";
        assert_eq!(ended.output(), words, "{end}: {ended:?}");
    }
}

#[test]
fn a_late_confirmation_undoes_what_no_guard_has_undone() {
    needs!("network");
    let ended = guarded(
        "earmark apply --confirm-within 600s one $change >/dev/null
         guards=$(guards); kill -STOP $guards; kill -KILL $guards; await none
         earmark confirm one; gro; earmark rollback >/dev/null
         earmark apply --confirm-within 600s one $change >/dev/null
         guards=$(guards); kill -STOP $guards; kill -KILL $guards; await none; expire
         earmark confirm one || echo status $?; gro",
    );
    // In time, guards or not; and too late.
    let kept = "one: kept; way back: earmark rollback one\n20000\n";
    assert_eq!(ended.output(), format!("{kept}status 1\n0\n"), "{ended:?}");
    assert!(ended.stderr.contains("that is undone"), "{ended:?}");
}

#[test]
fn other_users_see_what_is_overdue_of_root() {
    needs!("network");
    let ended = guarded(&format!(
        "mount -t tmpfs none /run; unset EARMARK_STATE_DIR; state=/run/earmark
         earmark apply --confirm-within 600s one $change >/dev/null
         guards=$(guards); kill -STOP $guards; kill -KILL $guards; expire
         mkdir /run/bin; cp {EARMARK} /run/bin/earmark; cd /run
         as_another() {{
             setpriv --reuid 65534 --regid 65534 --clear-groups env -u XDG_RUNTIME_DIR \
                 /run/bin/earmark \"$@\"
         }}
         as_another exporter --print 2>said | grep ^earmark_changes_overdue; cat said
         chmod go= /run/earmark
         as_another exporter --print 2>said | grep ^earmark_changes_overdue || cat said; gro"
    ));
    let said = "one: a change that was not confirmed in time is in force, for its guards were \
                stopped or killed; undo it with `earmark rollback`";
    // A user who may not look gets no zero.
    assert_eq!(ended.output(), format!("earmark_changes_overdue 1\n{said}\n20000\n"), "{ended:?}");
}
