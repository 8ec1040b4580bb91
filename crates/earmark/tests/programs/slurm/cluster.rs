//! A Slurm cluster in a lab: its controller on host a, its nodes a, b and c.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::{Directory, EARMARK, Lab, PATIENCE, compile_mpi, provider};

pub(crate) const NODES: [&str; 3] = ["a", "b", "c"];

/// Files that the nodes find in the directory of the cluster.
const FILES: [(&str, &str); 4] = [
    ("task-prolog.sh", include_str!("task-prolog.sh")),
    ("node.sh", include_str!("node.sh")),
    ("host.sh", include_str!("host.sh")),
    ("left.sh", include_str!("left.sh")),
];

pub(crate) struct Cluster {
    // It ends before its directory.
    lab: Lab,
    directory: Directory,
}

impl Cluster {
    /// Starts a cluster, whose nodes are idle. A node that says nothing for `timeout_s` is down.
    #[track_caller]
    pub(crate) fn start(timeout_s: u32) -> Self {
        let directory = Directory::new();
        for (name, text) in FILES {
            directory.write(name, text);
        }
        let settings = include_str!("slurm.conf");
        directory.write("slurm.conf", &format!("{settings}SlurmdTimeout={timeout_s}\n"));
        let key = directory.write("munge.key", &format!("{:064x}", std::process::id()));
        std::fs::set_permissions(key, PermissionsExt::from_mode(0o400)).unwrap();
        // Users may not reach into the directories of the user who runs tests.
        std::fs::copy(provider().join("libearmark_fi.so"), directory.file("libearmark-fi.so"))
            .unwrap();
        directory.write("environment", &environment(&directory));
        let out = directory.file("out");
        std::fs::create_dir(&out).unwrap();
        std::fs::set_permissions(out, PermissionsExt::from_mode(0o1777)).unwrap();
        let host = format!("exec sh {}/host.sh {0} >/dev/null 2>&1", directory.path().display());
        let mut cluster =
            Self { lab: Lab::start(&["--on", "b", &host, "--on", "c", &host]), directory };
        let start = "mount -t tmpfs -o mode=1777 tmpfs /dev/shm && sh node.sh $PWD";
        cluster.run(&format!("{start} >node.log 2>&1 || {{ cat node.log; false; }}"));
        cluster.await_nodes("abc");
        cluster
    }

    /// Compiles a program, which is then in the directory of the cluster.
    #[track_caller]
    pub(crate) fn compile(&self, source: &str) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
        let program = self.directory.path().join(source.file_stem().unwrap());
        compile_mpi("mpicc", &source, &program);
    }

    /// Runs a script on host a, in the directory of the cluster; its status, and all it wrote.
    /// In the script, `unprivileged COMMAND` runs a command as a user without rights.
    #[track_caller]
    pub(crate) fn ask(&mut self, script: &str) -> (i32, String) {
        let directory = self.directory.path().display();
        let quoted = script.replace('\'', r"'\''");
        let patience = PATIENCE.as_secs();
        let script = format!("cd {directory}; . ./environment; {quoted}");
        self.lab.ask(&format!("timeout -k 5 {patience} sh -c '{script}'"))
    }

    /// The output of a script that must succeed.
    #[track_caller]
    pub(crate) fn run(&mut self, script: &str) -> String {
        let (status, text) = self.ask(script);
        assert_eq!(status, 0, "{script}: {text}{}", self.logs());
        text
    }

    /// Submits a one-line script as a batch job, by `unprivileged` or, if empty, root; its number.
    ///
    /// Its output goes to `out/NAME` in the directory of the cluster.
    #[track_caller]
    pub(crate) fn submit(&mut self, by: &str, name: &str, options: &str, script: &str) -> String {
        let wrapped = format!("printf '%s\\n' '#!/bin/sh' '{script}' >{name}.sh");
        let options = format!("--parsable -o out/{name} {options}");
        self.run(&format!("{wrapped}; {by} sbatch {options} {name}.sh")).trim().to_owned()
    }

    /// Waits until a script succeeds; what it wrote then.
    #[track_caller]
    pub(crate) fn until(&mut self, script: &str) -> String {
        let begin = Instant::now();
        loop {
            let (status, text) = self.ask(script);
            if status == 0 {
                return text;
            }
            assert!(
                begin.elapsed() < PATIENCE,
                "not within {PATIENCE:?}: {script}: {text}{}",
                self.logs()
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until these nodes and no others are idle.
    #[track_caller]
    pub(crate) fn await_nodes(&mut self, nodes: &str) {
        let idle = "sinfo -h -N -t idle -o %N | tr -d \"\\n\"";
        self.until(&format!("test \"$({idle})\" = {nodes}"));
    }

    /// What jobs have on these nodes, each line with the number of its node.
    ///
    /// Each task writes to a file of its own: `srun` may find its connection to a task reset, and
    /// end the others, if that task ends before it has read what comes from `srun`.
    #[track_caller]
    pub(crate) fn left(&mut self, nodes: &str, options: &str) -> String {
        let count = nodes.split(',').count();
        let files = "--input=none --output=out/left-%t --error=out/left-%t";
        let srun = format!("srun --mpi=none -w {nodes} -N{count} -n{count} {files} {options}");
        let numbers: Vec<String> = (0..count).map(|number| number.to_string()).collect();
        let read = "sed \"s/^/$number: /\" out/left-$number";
        self.run(&format!(
            "rm -f out/left-*; {srun} sh left.sh && for number in {}; do {read}; done",
            numbers.join(" ")
        ))
    }

    /// Waits until jobs have nothing any more on a node whose power is cut.
    #[track_caller]
    pub(crate) fn await_dead(&self, node: &str) {
        let file = self.directory.file(&format!("left-{node}"));
        let begin = Instant::now();
        let mut left = None;
        while left.as_deref() != Some("") {
            assert!(begin.elapsed() < PATIENCE, "it leaves {left:?}");
            std::thread::sleep(Duration::from_millis(10));
            left = std::fs::read_to_string(&file).ok();
        }
    }

    /// Cuts the power of a node, or turns it on again.
    pub(crate) fn power(&self, node: &str, is_on: bool) {
        let off = format!("off-{node}");
        if is_on {
            std::fs::remove_file(self.directory.file(&off)).unwrap();
        } else {
            self.directory.write(&off, "");
        }
    }

    fn logs(&mut self) -> String {
        let directory = self.directory.path().display();
        let files = format!("/run/slurm/slurmctld.log /run/slurm/slurmd.log {directory}/out/*");
        self.lab.ask(&format!("tail -n 30 {files}")).1
    }
}

/// What commands on host a begin with.
///
/// On a busy machine PMIx of Slurm 22.05 often fails to connect its daemons with each other, and
/// then kills the job; by way of Slurm's own connections it does not.
fn environment(directory: &Directory) -> String {
    format!(
        "export SLURM_CONF={0}/slurm.conf TMPDIR=/run/tmp SLURM_PMIX_DIRECT_CONN=false\n\
         eval \"$({EARMARK} mpirun --print-env --mpi openmpi --provider {0})\"\n\
         unprivileged() {{ setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all \
         --bounding-set=-all \"$@\"; }}\n",
        directory.path().display()
    )
}
