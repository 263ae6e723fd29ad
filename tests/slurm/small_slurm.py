"""A Slurm of two nodes on this machine, in a folder of its own: munge, a controller and two slurmd."""
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools"))
import processes  # noqa: E402

PROGRAMS = ["munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "mpirun"]

CONFIGURATION = """
ClusterName=weft
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort={port}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1
SlurmdTimeout=15
KillWait=5
NodeName=node[1-2] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first_node_port}-{last_node_port}] CPUs=2 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing():
    """Why it cannot be started here; empty: it can."""
    if os.geteuid() != 0:
        return "slurmd wants to be root"
    search = os.environ["PATH"] + ":/usr/sbin:/sbin"
    absent = [program for program in PROGRAMS if shutil.which(program, path=search) is None]
    return f"not installed: {', '.join(absent)} (slurmctld, slurmd, slurm-client, munge)" if absent else ""


def free_ports(count):
    """Neighbours that nobody listens on."""
    for first in range(27817, 32000, count):
        sockets = []
        try:
            for port in range(first, first + count):
                sockets.append(socket.socket())
                sockets[-1].bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
        finally:
            for one in sockets:
                one.close()
    raise RuntimeError("no free ports")


class SmallSlurm:
    def __init__(self, folder):
        self.folder = folder
        self.environment = dict(os.environ, SLURM_CONF=f"{folder}/slurm.conf", OMP_WAIT_POLICY="passive",
                                PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")

    def __enter__(self):
        os.makedirs(f"{self.folder}/state")
        os.chmod(self.folder, 0o755)  # munge wants nobody else to write above its socket
        with open(f"{self.folder}/munge.key", "wb") as key:
            key.write(os.urandom(128))
        os.chmod(f"{self.folder}/munge.key", 0o400)
        port = free_ports(3)
        with open(f"{self.folder}/slurm.conf", "w") as file:
            file.write(CONFIGURATION.format(host=socket.gethostname().split(".")[0], folder=self.folder, port=port,
                                            first_node_port=port + 1, last_node_port=port + 2))
        try:
            self.run(["munged", "--force"] + [f"--{name}={self.folder}/munge.{name.split('-')[0]}"
                                              for name in ("key-file", "socket", "pid-file", "log-file", "seed-file")])
            self.run(["slurmctld"])
            for node in ("node1", "node2"):
                self.start_node(node)
            self.wait_for(lambda: self.run(["sinfo", "-h", "-o", "%D %t"]).split() == ["2", "idle"], 20, "idle nodes")
        except BaseException:
            self.__exit__()
            raise
        return self

    def start_node(self, node):
        self.run(["slurmd", "-N", node])

    def __exit__(self, *_):
        subprocess.run(["scancel", "--user=root"], env=self.environment, capture_output=True, timeout=20)
        for name in ("slurmd-node1.pid", "slurmd-node2.pid", "slurmctld.pid", "munge.pid"):
            self.end(self.process(name))
        for step in self.processes_of("slurmstepd"):
            processes.send(step.process, signal.SIGKILL)

    def process(self, name):
        try:
            with open(f"{self.folder}/{name}") as file:
                return int(file.read())
        except (OSError, ValueError):
            return None

    def end(self, process, number=signal.SIGTERM):
        if process is None:
            return
        try:
            os.kill(process, number)
            for _ in range(100):
                os.kill(process, 0)
                time.sleep(0.05)
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def processes_of(self, name):
        """Of this Slurm: those that have its configuration in their environment."""
        return [running for running in processes.all_running()
                if running.name == name and self.folder.encode() in running.environment]

    def run(self, words, check=True, **options):
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=90, **options)
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)}: exit code {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def job(self, number):
        """What scontrol says of a job, by key."""
        text = self.run(["scontrol", "show", "job", "--oneliner", str(number)])
        return dict(word.split("=", 1) for word in text.split() if "=" in word)

    def wait_for(self, condition, seconds, what):
        end = time.time() + seconds
        while not condition():
            if time.time() > end:
                raise RuntimeError(f"{what}: not within {seconds} s\n" + self.logs())
            time.sleep(0.1)

    def logs(self):
        text = ""
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".log"):
                with open(f"{self.folder}/{name}", errors="replace") as file:
                    text += f"--- {name}\n" + "".join(file.readlines()[-15:])
        return text
