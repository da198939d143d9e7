# SPDX-License-Identifier: Apache-2.0
"""The network of a cluster with real nodes: a network namespace for the control plane and one for each node, by links.

    10.86.0.1        the control plane: API server, CoreDNS, and servers of tests. It has the switch of all links
    10.86.0.10 + N   node N, called node-N
    10.85.N.0/24     the pods of node N. They reach those of other nodes without a translation of addresses

    network = Network("muster-e2e-x")
    network.cut("node-0", "node-1")         # no packet passes, and no error comes
    network.cut("node-0", CONTROL_PLANE)
    network.slow("node-0", "node-2", "1mbit")
    network.mend()

Needs root. Not thread-safe.
"""

import os
import subprocess

NAMESPACES = "/run/netns"
SERVICES = "10.96.0.0/16"
API_SERVICE = "10.96.0.1"
PODS = "10.85.0.0/16"
CONTROL_PLANE = "control-plane"
ADDRESS = "10.86.0.1"  # the control plane's, for nodes and pods; only in a namespace
SWITCH = "switch"
UPLINK = "eth0"
# The bridge gets a fixed MAC address. Without one it takes the lowest address of its ports, which changes when that pod
# ends. The other pods would then not reach the bridge until their ARP entries expire, half a minute later.
BRIDGE_MAC = "0a:58:0a:55:00:01"


def address(number):
    return f"10.86.0.{10 + number}"


def pods(number):
    return f"10.85.{number}.0/24"


def gateway(number):
    """The address of the bridge that node's pods are on."""
    return f"10.85.{number}.1"


def enter(namespace):
    """The words that run the command after them in a network namespace."""
    return ["nsenter", f"--net={NAMESPACES}/{namespace}", "--"]


def run(*command, content=None):
    subprocess.run(command, check=True, input=content, text=True)


class Network:
    """`name`: of the control plane's namespace. The namespaces of the nodes are called NAME.node-N."""

    def __init__(self, name):
        self.name = name
        self.nodes = {}  # number by name
        self.cuts = set()  # (from, to)
        self.rates = {}  # rate by (from, to)

    def namespace(self, node):
        return self.name if node == CONTROL_PLANE else f"{self.name}.{node}"

    def create(self):
        name = self.name
        run("ip", "netns", "add", name)
        run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", name, "addr", "add", f"{API_SERVICE}/32", "dev", "lo")
        run("ip", "-n", name, "link", "add", SWITCH, "type", "bridge")
        run("ip", "-n", name, "addr", "add", f"{ADDRESS}/24", "dev", SWITCH)
        run("ip", "-n", name, "link", "set", SWITCH, "up")
        run(*enter(name), "sysctl", "-qw", "net.ipv4.ip_forward=1")

    def add(self, node, number):
        """Links a node to the switch, with an empty bridge for its pods."""
        inside = self.namespace(node)
        run("ip", "netns", "add", inside)
        run("ip", "-n", self.name, "link", "add", node, "type", "veth", "peer", "name", UPLINK, "netns", inside)
        run("ip", "-n", self.name, "link", "set", node, "master", SWITCH, "up")
        run("ip", "-n", self.name, "route", "add", pods(number), "via", address(number))
        run("ip", "-n", inside, "link", "set", "lo", "up")
        run("ip", "-n", inside, "addr", "add", f"{address(number)}/24", "dev", UPLINK)
        run("ip", "-n", inside, "link", "set", UPLINK, "up")
        run("ip", "-n", inside, "route", "add", "default", "via", ADDRESS)
        run("ip", "-n", inside, "link", "add", "cni0", "address", BRIDGE_MAC, "type", "bridge")
        run("ip", "-n", inside, "addr", "add", f"{gateway(number)}/24", "dev", "cni0")
        run("ip", "-n", inside, "link", "set", "cni0", "up")
        run(*enter(inside), "sysctl", "-qw", "net.ipv4.ip_forward=1")
        for other, its in self.nodes.items():
            run("ip", "-n", inside, "route", "add", pods(its), "via", address(its))
            run("ip", "-n", self.namespace(other), "route", "add", pods(number), "via", address(number))
        self.nodes[node] = number

    def delete(self):
        """Deletes the namespaces, also those of a killed run."""
        for namespace in os.listdir(NAMESPACES) if os.path.isdir(NAMESPACES) else ():
            if namespace == self.name or namespace.startswith(f"{self.name}."):
                run("ip", "netns", "del", namespace)

    # ---- faults of the links

    def cut(self, source, target, both=True):
        """Drops all packets from `source` to `target`; with `both` also those that go back. Each is a node's name or
        CONTROL_PLANE."""
        self.cuts |= {(source, target), *([(target, source)] if both else [])}
        self._write_cuts()

    def isolate(self, node):
        """Cuts a node off from everything."""
        for other in [CONTROL_PLANE, *self.nodes]:
            if other != node:
                self.cuts |= {(node, other), (other, node)}
        self._write_cuts()

    def slow(self, source, target, rate):
        """Limits what goes from `source` to `target`. `rate`: in tc's words, as "1mbit"."""
        self.rates[source, target] = rate
        self._write_rates(source)

    def mend(self, *nodes):
        """Ends all faults of the links of these nodes; of none: of all links."""
        self._mend(lambda link: not nodes or set(link) & set(nodes))

    def mend_link(self, *ends):
        """Ends all faults of the link between two."""
        self._mend(lambda link: set(link) == set(ends))

    def _mend(self, mended):
        self.cuts = {link for link in self.cuts if not mended(link)}
        self._write_cuts()
        mended = [link for link in self.rates if mended(link)]
        for link in mended:
            self.rates.pop(link)
        for source in {source for source, _ in mended}:
            self._write_rates(source)

    def _write_cuts(self):
        rules = {"input": [], "forward": [], "output": []}
        for source, target in sorted(self.cuts):
            if target == CONTROL_PLANE:
                rules["input"].append(f"iifname {source} drop")
            elif source == CONTROL_PLANE:
                rules["output"].append(f"oifname {target} drop")
            else:
                rules["forward"].append(f"iifname {source} oifname {target} drop")
        chains = "\n".join(
            f"chain {hook} {{ type filter hook {hook} priority 0; {'; '.join(lines)}{';' if lines else ''} }}"
            for hook, lines in rules.items()
        )
        # The first line makes the second one work when there is no table yet.
        text = f"table bridge cuts\ndelete table bridge cuts\ntable bridge cuts {{\n{chains}\n}}\n"
        run(*enter(self.name), "nft", "-f", "-", content=text)

    def _write_rates(self, source):
        """The links that leave `source` share a device on nodes. The control plane has one for each."""
        links = {target: rate for (its, target), rate in self.rates.items() if its == source}
        devices = self.nodes if source == CONTROL_PLANE else [UPLINK]
        for device in devices:
            tc = [*enter(self.namespace(source)), "tc"]
            subprocess.run([*tc, "qdisc", "del", "dev", device, "root"], capture_output=True)  # there may be none
            mine = {target: rate for target, rate in links.items() if device in (UPLINK, target)}
            if mine:
                run(*tc, "qdisc", "add", "dev", device, "root", "handle", "1:", "htb")
            for number, (target, rate) in enumerate(mine.items(), 1):
                which = f"1:{number}"
                run(
                    *tc,
                    "class",
                    "add",
                    "dev",
                    device,
                    "parent",
                    "1:",
                    "classid",
                    which,
                    "htb",
                    "rate",
                    rate,
                    "quantum",
                    "1514",
                )
                for match in self._matches(source, target):
                    run(
                        *tc,
                        *("filter", "add", "dev", device, "parent", "1:", "protocol", "ip"),
                        *("u32", "match", "ip", *match, "flowid", which),
                    )

    def _matches(self, source, target):
        """What tells this link's packets from others: on a node the target, on the control plane's ports the source."""
        if source == CONTROL_PLANE:
            return [("src", f"{ADDRESS}/32"), ("src", f"{API_SERVICE}/32")]
        if target == CONTROL_PLANE:
            return [("dst", f"{ADDRESS}/32"), ("dst", f"{API_SERVICE}/32")]
        return [("dst", f"{address(self.nodes[target])}/32"), ("dst", pods(self.nodes[target]))]
