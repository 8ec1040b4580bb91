//! The command line.

use std::path::PathBuf;

use base::quantity::Unit;
use clap::{Args, Parser, Subcommand};

use crate::command::adaptive::AdaptiveArgs;
use crate::command::apply::{ApplyArgs, RollbackArgs};
use crate::command::calibrate::CalibrateArgs;
use crate::command::explain::ExplainArgs;
use crate::command::exporter::ExporterArgs;
use crate::command::lab::LabRunArgs;
use crate::command::lane::LaneArgs;
use crate::command::mpirun::MpirunArgs;
use crate::command::mx::MxCommand;
use crate::command::page::PageArgs;
use crate::command::persist::PersistArgs;
use crate::command::predict::PredictArgs;
use crate::command::probe::ProbeArgs;
use crate::command::read::ReadArgs;
use crate::command::reproduce::ReproduceArgs;
use crate::command::schema::SchemaOf;
use crate::command::show::ShowArgs;
use crate::command::tune::TuneArgs;
use crate::command::watch::WatchArgs;
use crate::probe_blind::BlindArgs;
use crate::probe_blind::bulk::BulkArgs;
use crate::tour::TourArgs;
use bench::experiment::Experiment;
use bench::options::{ExperimentOptions, NicOptions, duration, number};
use bench::scenario;
use bench::shard::ShardArgs;
use bench::world::WorldKind;
use lab::kernel::Suite;
use probe::echo::EchoArgs;
use tune::peer::ServeArgs;

/// Interrupts at the right moment.
///
/// Earmark shows what NIC interrupt coalescing does to your latency: two Linux hosts on this
/// machine, a software NIC between them whose moderation you choose, real traffic, real programs.
#[derive(Debug, Parser)]
#[command(name = "earmark", version, long_version = env!("EARMARK_LONG_VERSION"))]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Eight strategies in a model, three on real traffic, in a minute
    ///
    /// The model needs no rights. Where hosts cannot be made for real traffic, its figures are the
    /// demo, which says what was missing.
    Demo(DemoArgs),
    /// The five jobs on one device of a lab, in a minute or two
    ///
    /// For each the reason, the command as you would type it, what it prints, and what that says.
    /// Nothing of this machine is changed. The exit status is 1 if a step did not show what it is
    /// for. Only root sees explain.
    Tour(TourArgs),
    /// Run one experiment under one setting, or compare several
    Bench(Box<BenchArgs>),
    /// Make one result of what the shards of a command printed
    ///
    /// It is as the command would be without them: shards of `bench`, `reproduce`, `mx soak` and
    /// the blind tests of probe, run with --shard. Shards that are missing, or were run by another
    /// Earmark or with other options, are refused.
    Merge(MergeArgs),
    /// Measure again what documents report, beside their numbers
    ///
    /// The documents are those that Earmark implements: articles on e1000, bge and the Odroid C2,
    /// and the Open-MX paper, in virtual time. Writes an HTML report. The exit status does not
    /// depend on how many numbers agree.
    Reproduce(ReproduceArgs),
    /// Run your own programs on hosts that our NIC connects
    #[command(subcommand)]
    Lab(LabCommand),
    /// Run an MPI program on hosts of ours, and count its interrupts
    ///
    /// The exit status is that of the program. What the NIC has counted goes to standard error.
    Mpirun(Box<MpirunArgs>),
    /// Where the time of a request goes, and why
    ///
    /// For what requests wait, and the causes of typical and of the slowest ones. Of a HOST that
    /// runs an echo, which is asked; of a DEV, for whatever it receives; of a program, which is
    /// run, or of a process or cgroup that runs.
    /// Reads only. Needs root, or CAP_BPF and CAP_PERFMON, and Linux 5.15.
    Explain(Box<ExplainArgs>),
    /// Look at the NIC of a running lab, and change it meanwhile
    Nic(NicArgs),
    /// What delays packets that a device of this machine receives
    ///
    /// From the wire to the application, on one screen, and for how long at most. It only reads, as
    /// any user.
    Show(ShowArgs),
    /// The same from pasted output, logs and reports of other machines
    ///
    /// Output of ethtool and of tools that measure round trips, /proc/interrupts, files of TuneD,
    /// NetworkManager, systemd and others, a sosreport or a supportconfig: what each was taken for,
    /// and what follows. It opens the files and nothing else, as any user.
    Read(ReadArgs),
    /// Both in a browser, and the model live
    ///
    /// One file, which asks nothing of any server: what you paste or drop stays in the browser.
    /// Prints its address, and opens it where there is a desktop.
    Page(PageArgs),
    /// Packets, interrupts and drops of devices, again and again
    Watch(WatchArgs),
    /// Metrics of this machine's devices for Prometheus, until Ctrl-C
    ///
    /// What can hold packets back, settings in force, and counters of packets, interrupts and
    /// drops, over HTTP or into a file. It only reads, as any user. Sockets that systemd passes are
    /// used instead of --listen.
    Exporter(ExporterArgs),
    /// Message passing over plain Ethernet: measure, simulate, look
    #[command(subcommand)]
    Mx(MxCommand),
    /// Find the settings of a device that suit a workload
    ///
    /// Measures few settings, in turns, until the best under the goal stands out, puts that into
    /// force, reads back what the device took, and measures again. Ctrl-C leaves the device as it
    /// was. The exit status is 3 if no setting meets the goal; nothing is changed then.
    Tune(Box<TuneArgs>),
    /// Be the far host for `tune` on another one, until Ctrl-C
    Serve(ServeArgs),
    /// Change settings of a device so that it can be undone
    ///
    /// Settings have ethtool's names. Reads back what the device took and prints it. If anything
    /// fails, and if this is killed, the device is as it was.
    Apply(ApplyArgs),
    /// A queue for urgent packets on a NIC of this machine
    ///
    /// Rules, a timer and a table, together: rules of the NIC (ntuple) send the packets to a queue
    /// that interrupts at once, the hash leaves that queue out, and the others wait as before. What
    /// the NIC lacks is said, and what is left; if nothing is, nothing is changed. Undone like any
    /// change. Without RULES, says which lanes there are.
    Lane(LaneArgs),
    /// Keep a change that was made with `apply --confirm-within`
    Confirm(RollbackArgs),
    /// Undo what Earmark has changed
    Rollback(RollbackArgs),
    /// Files that bring a device's settings back at each boot
    ///
    /// Prints or writes them: a systemd .link file, and a udev rule for what that cannot say; or
    /// with --as, what NetworkManager, ifupdown, TuneD, nmstate, Ansible or NixOS read.
    Persist(PersistArgs),
    /// What each setting would do to traffic that you have captured
    ///
    /// The arrivals of a capture go through the NIC under each setting: interrupts, and how long
    /// packets wait for them, of all and by port, flow or rule. Proposes rules for marks, and with
    /// --grid searches settings. Needs no rights and no device; nothing is sent or changed.
    Predict(Box<PredictArgs>),
    /// What a round trip to a host costs, and the holds in it
    ///
    /// Says side, type and length of holds. Sends some thousands of small packets in a few seconds,
    /// in trains, and needs nothing on the far side but an echo: `earmark echo`, NTP, ping, a TCP
    /// echo, memcached.
    Probe(ProbeArgs),
    /// Answer probes of another host, until Ctrl-C
    ///
    /// Over UDP it answers requests of Earmark alone, with no more bytes than came; over TCP it
    /// sends back what comes.
    Echo(EchoArgs),
    /// Test probe on secret settings of our NIC, in the live or the virtual world
    #[command(hide = true)]
    ProbeBlind(BlindArgs),
    /// Be the traffic beside such a test (it starts this)
    #[command(hide = true)]
    ProbeBulk(BulkArgs),
    /// List the scenarios that come with Earmark, or show one
    Scenario {
        /// Show this one
        #[arg(value_parser = scenario::offered(), hide_possible_values = true)]
        name: Option<String>,
    },
    /// Find or build the Linux kernel that guests run
    ///
    /// Prints its path. Building takes about four minutes, once. The sources, 150 MB, come from
    /// apt; nothing needs root.
    Kernel {
        /// One of the newest series in this suite of the distribution's archive, as in
        /// trixie-backports; guests run it where `EARMARK_KERNEL` names it
        #[arg(long)]
        suite: Option<Suite>,
    },
    /// Measure what interrupts, packets, wake-ups and copies cost here
    ///
    /// Virtual time and the model can cost the same then. Floods a host with frames that it drops,
    /// and with datagrams, with an interrupt for each and for many. Takes about a minute and a
    /// half. Prints options for `bench --world virtual`, and writes a machine for `bench --world
    /// model` with --machine.
    Calibrate(CalibrateArgs),
    /// Compare Linux's own adaptive moderation with ours
    Adaptive(AdaptiveArgs),
    /// Print the JSON Schema of what a command prints
    Schema {
        /// Of this command
        command: SchemaOf,
    },
    /// Print shell completions
    Completions {
        /// For this shell
        shell: clap_complete::Shell,
    },
    /// Print a manual page
    Man {
        /// Of this command, such as tune, or nic set; without it, of earmark itself
        #[arg(conflicts_with = "all", value_name = "COMMAND")]
        of: Vec<String>,
        /// Write the pages of all commands into this directory instead
        #[arg(long, value_name = "DIRECTORY")]
        all: Option<PathBuf>,
    },
    /// Stand for an agent on another host (tune starts these)
    #[command(hide = true)]
    At {
        /// Where `earmark serve` listens
        address: std::net::SocketAddr,
        /// The word `agent` or `follow`, and the specification in JSON
        #[arg(required = true, num_args = 2)]
        words: Vec<String>,
    },
    /// Undo a change when the process that makes it dies (that process starts this)
    #[command(hide = true)]
    Guard {
        /// Where the journals are
        directory: PathBuf,
        /// The device, in JSON
        device: String,
    },
    /// Drive one workload (the bench starts these)
    #[command(hide = true)]
    Agent {
        /// The workload, in JSON
        spec: String,
    },
    /// Follow requests for another host (serve starts these)
    #[command(hide = true)]
    Follow {
        /// What to follow, in JSON
        order: String,
    },
    /// Start a program on another host of the lab (the launcher of an MPI starts this)
    #[command(hide = true)]
    RemoteShell {
        /// Where the lab listens
        socket: PathBuf,
        /// Options, a host and a command, as for ssh
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Be process 1 of a guest (the kernel of a guest starts this)
    #[command(hide = true)]
    GuestInit {
        /// What the kernel passes on besides: parameters that it adds to its own
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        ignored: Vec<std::ffi::OsString>,
    },
    /// Run a program in a guest, as its proxy (lab and bench start these)
    #[command(hide = true)]
    GuestExec {
        /// Where the guest's programs are started
        socket: PathBuf,
        /// The program and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<std::ffi::OsString>,
    },
}

impl Command {
    /// Whether it says first that a device was left changed. Commands that change devices undo that
    /// by themselves; what those say that other programs start is read by no user.
    #[must_use]
    pub(crate) fn reminds(&self) -> bool {
        let undoes = matches!(
            self,
            Self::Apply(_)
                | Self::Lane(_)
                | Self::Confirm(_)
                | Self::Rollback(_)
                | Self::Persist(_)
                | Self::Tune(_)
        );
        let is_started_by_a_program = matches!(
            self,
            Self::Guard { .. }
                | Self::At { .. }
                | Self::Agent { .. }
                | Self::Follow { .. }
                | Self::RemoteShell { .. }
                | Self::GuestInit { .. }
                | Self::GuestExec { .. }
                | Self::ProbeBulk(_)
                | Self::Completions { .. }
        );
        !undoes && !is_started_by_a_program
    }

    /// Whether it runs what older kernels cannot: hosts of ours, their traffic, or MX.
    #[must_use]
    pub(crate) fn needs_a_recent_kernel(&self) -> bool {
        let serves_a_nic = |args: &NicArgs| matches!(args.command, NicCommand::Serve { .. });
        match self {
            Self::Bench(_) | Self::Lab(_) | Self::Mpirun(_) | Self::Mx(_) => true,
            Self::Reproduce(_) | Self::Calibrate(_) | Self::Adaptive(_) => true,
            Self::Tune(_) | Self::Serve(_) | Self::ProbeBlind(_) => true,
            Self::Nic(args) => serves_a_nic(args),
            _ => false,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// Seconds of real traffic measured for each strategy and round
    #[arg(long, default_value_t = 0.4, value_name = "SECONDS", value_parser = duration)]
    pub(crate) duration: f64,
    /// How often each strategy has its turn on real traffic, rather than until rounds agree
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: Option<u32>,
    /// Where the HTML report goes
    #[arg(long, default_value = "earmark-report.html", value_name = "FILE")]
    pub(crate) report: PathBuf,
    /// Also write everything as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Which packets are marked
    #[arg(long, value_name = "RULES")]
    pub(crate) mark: Option<bench::options::Text<nic::marker::Rules>>,
    /// How the NIC waits on real traffic: sleep, precise or spin
    #[arg(long, value_name = "WAIT")]
    pub(crate) wait: Option<bench::options::Text<lab::wait::Waiting>>,
    /// What hosts of the model are like: a machine that Earmark brings (server, ideal, clovertown,
    /// e1000, bge, odroid), or a file, such as `earmark calibrate --machine FILE` writes
    #[arg(long, value_name = "NAME|FILE[,KEY=VALUE]")]
    pub(crate) machine: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    /// The experiment; with --scenario, one of its own, or without it all of them
    #[arg(value_enum, required_unless_present = "scenario")]
    pub(crate) experiment: Option<Experiment>,
    /// Where to run it
    #[arg(long, value_enum)]
    pub(crate) world: Option<WorldKind>,
    /// Start from a scenario: a name that `earmark scenario` lists, or a TOML file
    #[arg(long, value_name = "NAME|FILE")]
    #[arg(value_parser = scenario::offered(), hide_possible_values = true)]
    #[arg(conflicts_with = "svg")]
    pub(crate) scenario: Option<String>,
    #[command(flatten)]
    pub(crate) output: BenchOutput,
    #[command(flatten)]
    pub(crate) shard: ShardArgs,
    #[command(flatten, next_help_heading = "NIC and cable")]
    pub(crate) nic: NicOptions,
    #[command(flatten, next_help_heading = "Experiment")]
    pub(crate) options: ExperimentOptions,
}

#[derive(Args, Debug)]
pub(crate) struct BenchOutput {
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a histogram of each setting's latencies, too
    #[arg(long, conflicts_with = "json")]
    pub(crate) histogram: bool,
    /// Print the ratio of each setting to each other one, too: a matrix for each figure
    #[arg(long, conflicts_with = "json")]
    pub(crate) ratios: bool,
    /// Draw latency against interrupts, or host load where hosts cost time, into an SVG file
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct MergeArgs {
    /// What the shards have printed
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Merge those that are there, if some are missing; the result says so
    #[arg(long)]
    pub(crate) partial: bool,
    /// Also write the result as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Of shards of reproduce: where the HTML report goes
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) printed: BenchOutput,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Run commands on the hosts; the exit status is that of the first one that fails
    ///
    /// Hosts share this machine's files, /tmp and /dev/shm among them. Each has a /run of its own,
    /// with the machine's directories and none of its files: make what a server misses there, as
    /// in `mkdir -p /run/sshd`. Guests (--hosts uml, --time virtual) read this machine's files;
    /// /tmp, /run and /dev/shm are their own, begin empty, and are gone with them. SIGINT goes to
    /// the commands; a second one ends all.
    Run(Box<LabRunArgs>),
    /// A shell on host a (or b); `exit` ends the lab
    ///
    /// What a host shares with this machine and what is its own: `earmark lab run --help`.
    Shell {
        /// The host to run on
        #[arg(long, default_value = "a", value_parser = ["a", "b"])]
        on: String,
        #[command(flatten)]
        nic: Box<NicOptions>,
    },
}

#[derive(Args, Debug)]
pub(crate) struct NicArgs {
    /// The lab, if several run
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) lab: Option<String>,
    #[command(subcommand)]
    pub(crate) command: NicCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NicCommand {
    /// Print settings and counters, as `ethtool -c` and `-S` do
    Show {
        /// One port, such as b0; without it, all
        port: Option<String>,
        /// Show this queue only
        #[arg(long)]
        queue: Option<u16>,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Change settings, as `ethtool -C` does: rx-usecs 50, rx-frames 16, adaptive-rx on, strategy
    /// marked:75, mark RULES, lane 'tcp-port=11211:1'
    Set {
        /// The port, such as b0
        port: String,
        /// Names and values, in turn
        #[arg(required = true, num_args = 2.., value_name = "NAME VALUE")]
        #[arg(allow_negative_numbers = true)]
        settings: Vec<String>,
        /// One queue; without it, all
        #[arg(long)]
        queue: Option<u16>,
    },
    /// Disconnect the frontend of a vhost-user port, so that another one may connect
    Evict {
        /// The port, such as b0
        port: String,
    },
    /// Print rates, again and again
    Watch {
        /// One port, such as b0; without it, all
        port: Option<String>,
        /// Seconds between two lines
        #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
        #[arg(value_parser = number(Unit::Seconds, 0.01..=3_600.0))]
        interval: f64,
        /// Stop after this many
        #[arg(long)]
        count: Option<u64>,
    },
    /// List the labs that run
    Labs,
    /// Be a NIC with two ports and a cable between them, until Ctrl-C, for vhost-user frontends:
    /// virtual machines, DPDK programs, your own (docs/vhost-user.md)
    Serve {
        /// The socket of port a0, which is made
        #[arg(value_name = "SOCKET_A")]
        a: PathBuf,
        /// The socket of port b0, which is made
        #[arg(value_name = "SOCKET_B")]
        b: PathBuf,
        #[command(flatten)]
        nic: Box<NicOptions>,
    },
}
