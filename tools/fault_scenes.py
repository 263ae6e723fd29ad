"""Where the ranks of a fault campaign run: on one host, or on several that network and mount namespaces make."""
import os
import subprocess

from processes import all_running

RANKS = 4
SCENES = {
    "host": ("kill", "stop", "pause", "kill_writer", "kill_mpirun"),
    "pairs": ("kill", "stop", "pause", "kill_writer", "kill_mpirun"),
    "links": ("kill", "stop", "kill_mpirun", "cut", "cut", "blink", "power"),
    "disks": ("kill", "power", "cut", "stop", "power"),
}
ON_NETWORK = ("links", "disks")
AGENT = """#!/bin/bash
# As ssh: HOST COMMAND... What is cut off is not reached.
host=$1
shift
said=$(timeout 3 bash -c "exec 3<>/dev/tcp/$host/9" 2>&1)
[[ $said == *refused* ]] || { echo "connect to $host: ${said:-no answer}" >&2; exit 255; }
index=$((${host##*.} - 1))
exec ip netns exec "PREFIX$index" unshare --uts --mount sh -c "hostname PREFIX$index; DISK$*"
"""
# Puts a folder of the host's own in the place of the folder of runs.
DISK = "mount --bind 'FOLDER/disks/$index' 'FOLDER/runs'; "


class Scene:
    """Where the ranks run."""

    def __init__(self, name, weft, folder):
        self.name, self.weft, self.folder = name, os.path.abspath(weft), folder
        self.environment = dict(os.environ, OMP_WAIT_POLICY="passive", OMPI_ALLOW_RUN_AS_ROOT="1",
                                OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        self.before, self.hosts = [], []
        self.prefix = f"wf{os.getpid() % 1000}h"  # of namespaces
        if name == "pairs":
            self.environment["WEFT_RANKS_PER_HOST"] = "2"
        if name in ON_NETWORK:
            self.links("up", str(RANKS + (name == "disks")), "1gbit")
            agent = f"{folder}/agent"
            with open(agent, "w") as file:
                disk = DISK.replace("FOLDER", folder) if name == "disks" else ""
                file.write(AGENT.replace("PREFIX", self.prefix).replace("DISK", disk))
            os.chmod(agent, 0o755)
            self.environment.update(OMPI_MCA_plm_rsh_agent=agent, OMPI_MCA_oob_tcp_if_include="eth0",
                                    OMPI_MCA_btl_tcp_if_include="eth0", OMPI_MCA_btl="tcp,vader,self",
                                    OMPI_MCA_hwloc_base_binding_policy="none")
            here = f"{self.prefix}{RANKS if name == 'disks' else 0}"  # where the launcher runs
            self.before = ["ip", "netns", "exec", here, "unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', here]
            self.hosts = ["--hosts", ",".join(f"10.77.0.{host + 1}:1" for host in range(RANKS))]

        if name == "disks":
            for host in range(RANKS):
                os.makedirs(f"{folder}/disks/{host}")
            os.mkdir(f"{folder}/runs")

    def path(self, run):
        """As --run takes it."""
        return f"runs/{run}" if self.name == "disks" else run

    def copies(self, run):
        """Where it lies."""
        if self.name != "disks":
            return [f"{self.folder}/{run}"]
        return [f"{self.folder}/disks/{host}/{run}" for host in range(RANKS)]

    def links(self, *words):
        tool = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shaped_links.sh")
        subprocess.run(["bash", tool, *words], check=True, capture_output=True, timeout=60,
                       env=dict(os.environ, LINKS_NAME=self.prefix))

    def close(self):
        if self.name in ON_NETWORK:
            self.links("down")

    def set_link(self, host, state):
        # At the bridge: the host itself keeps its address, as one whose cable is pulled.
        subprocess.run(["ip", "link", "set", f"{self.prefix}{host}-out", state], check=True, timeout=10)

    def start(self, words):
        return subprocess.Popen([*self.before, self.weft, *words], cwd=self.folder, env=self.environment, text=True,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)

    def processes(self):
        """Ranks by number, mpirun, and by number the daemons of other hosts."""
        ranks, mpirun, others = {}, None, []
        for running in all_running():
            program = os.path.basename(running.words[0]) if running.words else ""
            if program == "orted" and self.folder.encode() in running.environment:
                others.append(running.process)
            elif running.folder() != self.folder:
                continue
            elif program == "mpirun":
                mpirun = running.process
            elif running.name == "weft end":  # which looks after a rank that ends
                continue
            elif running.words[1:2] == ["train"] and (rank := running.variable("OMPI_COMM_WORLD_RANK")):
                ranks[int(rank)] = running.process
        return ranks, mpirun, others


def network_of(process):
    try:
        return os.readlink(f"/proc/{process}/ns/net")
    except OSError:
        return ""
