//! MPI under Slurm: Debian's Slurm and Open MPI in a lab, with our provider.
//!
//! It takes root, and the packages that `cargo xtask peers` gets.

mod cluster;

use cluster::{Cluster, NODES};

use crate::support::needs;

const CONFORMANCE: &str = "../mx/provider/tests/programs/conformance.c";
const RING: &str = "tests/programs/slurm/ring.c";
/// Nodes of a busy machine may say nothing for long.
const PATIENT_S: u32 = 300;

/// Requires that every rank of a program that has passed used our provider, on ports of this kind.
#[track_caller]
fn passed(text: &str, kind: &str, nodes: &[&str], ranks: usize) {
    assert!(text.contains("all passed"), "{text}");
    for node in nodes {
        let endpoints = text.matches(&format!(" on {kind}:{node}0,")).count();
        assert_eq!(endpoints, ranks, "of node {node}: {text}");
    }
    let closed = text.lines().filter(|line| line.contains(" closed: "));
    let idle = closed.clone().filter(|line| line.contains(": 0 messages sent"));
    assert_eq!((closed.count(), idle.count()), (ranks * nodes.len(), 0), "{text}");
}

#[test]
fn program_runs_on_two_and_three_nodes() {
    needs!("root", "lab", "mpicc", "munged", "slurmctld", "slurmd", "srun");
    let mut cluster = Cluster::start(PATIENT_S);
    cluster.compile(CONFORMANCE);
    let text = cluster.run("srun --mpi=pmix -N2 -n2 ./conformance short 2>&1");
    passed(&text, "packet", &NODES[..2], 1);
    let text = cluster.run("srun --mpi=pmix -N3 -n3 ./conformance short rma 2>&1");
    passed(&text, "packet", &NODES, 1);
}

#[test]
fn users_without_rights_have_batch_jobs_and_launchers_of_their_own() {
    needs!("root", "lab", "mpicc", "munged", "slurmctld", "slurmd", "srun");
    let mut cluster = Cluster::start(PATIENT_S);
    cluster.compile(RING);
    let mpirun = "mpirun --bind-to none --mca oob_tcp_if_include 10.9.0.0/24 ./ring 30";
    cluster.submit("unprivileged", "own", "--wait -N3 --ntasks-per-node=2", mpirun);
    passed(&cluster.run("cat out/own"), "udp", &NODES, 2);
    // What is missing is said by the provider: to a file of each task, since what a task writes to
    // `srun` may be lost when another one has ended the step.
    let refused =
        "unprivileged srun --mpi=pmix -N2 --error=out/refused-%t env -u EARMARK_PORT ./ring 30";
    let (status, text) = cluster.ask(refused);
    assert_ne!(status, 0, "{text}");
    let text = cluster.run("cat out/refused-*");
    assert!(text.contains("CAP_NET_RAW, or use udp:"), "{text}");
}

#[test]
fn cancelled_job_leaves_nothing_and_its_neighbours_alone() {
    needs!("root", "lab", "mpicc", "munged", "slurmctld", "slurmd", "srun");
    let mut cluster = Cluster::start(PATIENT_S);
    cluster.compile(RING);
    let options = "-N3 --ntasks-per-node=2";
    let job = cluster.submit("", "first", options, "srun --mpi=pmix ./ring");
    cluster.until("grep -qx busy out/first");
    let left = cluster.left("a,b,c", &format!("--overlap --jobid={job}"));
    for number in 0..3 {
        for thing in ["ring", "earmark-mx/", "/run/slurm/spool/pmix"] {
            assert!(left.contains(&format!("{number}: {thing}")), "no {thing}: {left}");
        }
    }
    // Another job on the same nodes outlives it.
    cluster.submit("", "second", options, "srun --mpi=pmix ./ring 200");
    cluster.until("grep -qx busy out/second");
    cluster.run(&format!("scancel {job}"));
    cluster.until("test -z \"$(squeue -h)\"");
    passed(&cluster.run("cat out/second"), "packet", &NODES, 2);
    assert_eq!(cluster.left("a,b,c", ""), "");
}

#[test]
fn killed_node_leaves_nothing_and_the_others_go_on() {
    needs!("root", "lab", "mpicc", "munged", "slurmctld", "slurmd", "srun");
    let mut cluster = Cluster::start(20);
    cluster.compile(RING);
    // Open MPI has shared memory of its own, whose files outlive it, unless it is switched off.
    let job = "OMPI_MCA_btl=self EARMARK_PEER_TIMEOUT=10 srun --mpi=pmix ./ring";
    cluster.submit("", "job", "-N3 --ntasks-per-node=2 --no-requeue", job);
    cluster.until("grep -qx busy out/job");
    cluster.power("b", false);
    cluster.await_dead("b");
    cluster.until("test -z \"$(squeue -h)\"");
    cluster.await_nodes("ac");
    assert_eq!(cluster.left("a,c", ""), "");
    let text = cluster.run("srun --mpi=pmix -N2 ./ring 30 2>&1");
    passed(&text, "packet", &["a", "c"], 1);
    cluster.power("b", true);
    cluster.await_nodes("abc");
    let text = cluster.run("srun --mpi=pmix -N3 ./ring 30 2>&1");
    passed(&text, "packet", &NODES, 1);
}
