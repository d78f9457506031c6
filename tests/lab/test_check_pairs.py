"""vecadd check on several GPUs and NUMA nodes: how pairs are connected, what is expected of them, where memory is."""

import os
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest
from checks import H200, Check, figure_of, make_quick, measured_of, of_id, this_machine

from vecadd.bench.timing import Samples
from vecadd.check import expected, findings, measure, topology
from vecadd.check.measure import Measured
from vecadd.check.topology import UNKNOWN, Connection

pytestmark = pytest.mark.no_native

GPUS = (H200, replace(H200, index=1))
FACTS = [{"pci_domain": 0, "pci_bus": bus, "pci_device": 0} for bus in (0x18, 0x9A)]
MATRIX = (
    "\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \t{0}\tPXB\t0-47\t0\t\tN/A\n"
    "GPU1\t{0}\t X \tSYS\t48-95\t1\t\tN/A\n"
    "NIC0\tPXB\tSYS\t X \n\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n"
)
STATUS = "GPU {0}: NVIDIA H200 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s\n\t Link 1: 26.562 GB/s\n"


@pytest.fixture
def nvidia_smi(tmp_path: Path, script: Any) -> Any:
    """nvidia_smi(topo, nvlink, index, mig=""): puts an nvidia-smi with these answers first on PATH."""

    def install(topo: str, nvlink: str, index: str, mig: str = "") -> None:
        for name, text in (("topo", topo), ("nvlink", nvlink), ("index", index), ("mig", mig)):
            (tmp_path / name).write_text(text)
        script(
            "nvidia-smi",
            f'case "$1" in\ntopo) cat {tmp_path}/topo ;;\nnvlink) cat {tmp_path}/nvlink ;;\n'
            f"*mig.mode*) cat {tmp_path}/mig ;;\n--query-gpu=index*) cat {tmp_path}/index ;;\nesac",
        )

    return install


@pytest.fixture
def smi(nvidia_smi: Any) -> Any:
    """smi(word): an nvidia-smi that says so of the pair, in whose order the GPUs are the other way round."""
    buses = "0, 00000000:9A:00.0\n1, 00000000:18:00.0\n"
    return lambda word: nvidia_smi(MATRIX.format(word), STATUS.format(0) + STATUS.format(1), buses)


@pytest.mark.parametrize(
    ("word", "name", "rate"),
    [
        ("NV18", "NVLink, 18 links", 18 * 26.562e9),
        ("PIX", "PCIe through one PCIe switch", 63.0e9),
        ("PXB", "PCIe through PCIe switches", 63.0e9),
        ("SYS", "PCIe through the link between NUMA nodes", None),
        ("NEW", "PCIe through NEW", None),
    ],
)
def test_a_connection_is_named_with_its_theory(smi: Any, word: str, name: str, rate: float | None) -> None:
    smi(word)
    found = topology.connections(GPUS, FACTS)
    assert found.keys() == {(0, 1), (1, 0)}
    assert {each.name for each in found.values()} == {name}
    assert [each.rate for each in found.values()] == [rate if rate is None else pytest.approx(rate, rel=1e-3)] * 2


def test_the_links_of_a_gpu_are_those_of_its_own_number(smi: Any, tmp_path: Path) -> None:
    smi("NV18")
    (tmp_path / "nvlink").write_text(STATUS.format(0) + STATUS.format(1).replace("26.562", "50"))
    found = topology.connections(GPUS, FACTS)
    assert (found[0, 1].rate, found[1, 0].rate) == (pytest.approx(18 * 50e9), pytest.approx(18 * 26.562e9))


def test_two_gpus_on_one_switch_are_as_fast_as_the_slower_ones_link(smi: Any) -> None:
    smi("PIX")
    found = topology.connections((GPUS[0], replace(GPUS[1], link_width_max=8)), FACTS)
    assert [each.rate for each in found.values()] == [pytest.approx(31.5e9, rel=1e-3)] * 2


def test_gpus_that_nvidia_smi_does_not_know_have_no_connection(smi: Any) -> None:
    smi("NV18")
    assert topology.smi_numbers(FACTS) == {0: 1, 1: 0}
    assert topology.connections(GPUS, [FACTS[0], {"pci_domain": 0, "pci_bus": 7, "pci_device": 0}]) == {}


@pytest.mark.parametrize("text", ["exit 1", "printf 'nonsense\\n'", "sleep 9"])
def test_an_nvidia_smi_that_does_not_work_leaves_all_unknown(
    text: str, script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    script("nvidia-smi", text)
    monkeypatch.setattr("vecadd._machine.SMI_TIMEOUT", 0.3)
    assert topology.connections(GPUS, FACTS) == {}


# NVLinks that are inactive


LINK = {True: "26.562 GB/s", False: "<inactive>"}


def status(*gpus: str | range, card: str = "NVIDIA H200", count: int = 18) -> str:
    """What nvidia-smi says of GPUs with these active links, or its words where it lists none."""
    lines = []
    for number, active in enumerate(gpus):
        lines.append(f"GPU {number}: {card} (UUID: GPU-{number})")
        each = (
            [f"\t Link {link}: {LINK[link in active]}" for link in range(count)]
            if isinstance(active, range)
            else [active]
        )
        lines += each
    return "\n".join(lines) + "\n"


def matrix(*rows: str) -> str:
    """Of words without the diagonal's."""
    names = [f"GPU{number}" for number in range(len(rows))]
    lines = ["\t" + "\t".join([*names, "CPU Affinity"])]
    for number, row in enumerate(rows):
        words = row.split()
        lines.append("\t".join([names[number], *words[:number], " X ", *words[number:], "0-47"]))
    return "\n".join(lines) + "\n"


@pytest.fixture
def connected(nvidia_smi: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """connected(status, matrix): the findings of a machine's NVLinks, and how its pairs are connected."""

    def make(status: str, matrix: str, divided: str = "") -> tuple[dict[str, Any], dict[tuple[int, int], Connection]]:
        count = matrix.count("GPU") // 2
        facts = [{"pci_domain": 0, "pci_bus": 0x10 + number, "pci_device": 0} for number in range(count)]
        nvidia_smi(matrix, status, "".join(f"{n}, 00000000:{0x10 + n:02X}:00.0\n" for n in range(count)), divided)
        monkeypatch.setattr(topology, "NODES", tmp_path / "none")
        gpus = tuple(replace(H200, index=number) for number in range(count))
        found = findings.find_topology(replace(this_machine(), gpus=gpus), facts, Measured())
        links_found = {each.where: each for each in found if each.name.startswith("nvlink/")}
        assert all(each.name == f"nvlink/{where}/active links" for where, each in links_found.items())
        return links_found, topology.connections(gpus, facts)

    return make


DARK = "NVML: Unable to retrieve NVLink information as all links are inActive"
FOUR = matrix("NV18 NV18 NV18", "NV18 NV18 NV18", "NV18 NV18 NV18", "NV18 NV18 NV18")
LESS = matrix("NV9 NV9 NV9", "NV9 NV18 NV18", "NV9 NV18 NV18", "NV9 NV18 NV18")
ALONE = matrix("PHB PHB SYS", "PHB NV12 SYS", "PHB NV12 SYS", "SYS SYS SYS")
WITHOUT = matrix("SYS SYS SYS", "SYS NV18 NV18", "SYS NV18 NV18", "SYS NV18 NV18")
ALL, NONE = range(18), range(0)


MACHINES = {
    "a switch": (status(ALL, ALL, ALL, ALL), FOUR, ["pass"] * 4),
    "half of one": (status(range(9), ALL, ALL, ALL), LESS, ["critical", "pass", "pass", "pass"]),
    "one link": (status(range(17), ALL), matrix("NV17", "NV17"), ["critical", "pass"]),
    "half of all": (status(range(9), range(9)), matrix("NV9", "NV9"), ["critical"] * 2),
    "a switch has failed": (status(range(14), range(14)), matrix("NV14", "NV14"), ["critical"] * 2),
    "half of a single GPU": (status(range(9)), matrix(""), ["critical"]),
    "fewer than a peer": (status(range(12), range(6)), matrix("NV6", "NV6"), ["info", "critical"]),
    "all of one": (status(NONE, ALL, ALL, ALL), WITHOUT, ["critical", "pass", "pass", "pass"]),
    "all of one of two": (status(DARK, ALL), matrix("SYS", "SYS"), ["critical", "pass"]),
    # As they were built.
    "three bridges of 18": (
        status(range(12), range(12), card="NVIDIA H100 PCIe"),
        matrix("NV12", "NV12"),
        ["info"] * 2,
    ),
    "a bridge of 12": (
        status(range(4), range(4), card="NVIDIA A100-PCIE", count=12),
        matrix("NV4", "NV4"),
        ["info"] * 2,
    ),
    "a bridge of 4": (status(range(4), range(4), card="NVIDIA A40", count=4), matrix("NV4", "NV4"), ["pass"] * 2),
    "two of a board of four": (status(range(6), range(6)), matrix("NV6", "NV6"), ["info"] * 2),
    "no bridge": (status(NONE, NONE), matrix("SYS", "SYS"), ["info"] * 2),
    "no bridge, in words": (status(DARK, DARK), matrix("SYS", "SYS"), []),
    "no NVLink": (status("", ""), matrix("SYS", "SYS"), []),
    "bridges for two of four": (status(NONE, range(12), range(12), NONE), ALONE, ["info"] * 4),
}


@pytest.mark.parametrize("name", MACHINES)
def test_inactive_links_fail_unless_the_machine_was_built_so(connected: Any, name: str) -> None:
    said, topo, severities = MACHINES[name]
    found, _ = connected(said, topo)
    assert [each.severity for each in found.values()] == severities


def test_a_gpu_in_mig_mode_may_have_no_link(connected: Any) -> None:
    found, _ = connected(status(NONE, ALL, ALL, ALL), WITHOUT, "0, Enabled\n1, Disabled\n2, Disabled\n3, Disabled\n")
    assert [each.severity for each in found.values()] == ["info", "pass", "pass", "pass"]


def test_cards_of_other_names_are_no_peers(connected: Any) -> None:
    both = status(range(4), card="NVIDIA RTX A6000", count=4) + status(NONE, card="NVIDIA A40", count=4).replace(
        "GPU 0", "GPU 1"
    )
    found, _ = connected(both, matrix("SYS", "SYS"))
    assert [each.severity for each in found.values()] == ["pass", "info"]


def test_inactive_links_are_named_and_theory_counts_them(connected: Any) -> None:
    found, pairs = connected(status(range(9), ALL, ALL, ALL), LESS)
    ill, well = found["gpu 0"], found["gpu 1"]
    assert (ill.value, ill.expected, well.value, well.expected) == (9, (18, inf), 18, (18, inf))
    assert ill.meaning == (
        "9 NVLinks of GPU 0 are active, where 18 should be. Inactive: links 9, 10, 11, 12, 13, 14, 15, 16, 17."
    )
    assert well.meaning == "18 of 18 NVLinks of GPU 1 are active."
    assert "nvidia-smi nvlink --status" in ill.next
    assert well.next == ""
    for pair, name in (
        ((0, 1), "NVLink, 9 of 18 links"),
        ((1, 0), "NVLink, 9 of 18 links"),
        ((1, 2), "NVLink, 18 links"),
    ):
        assert (pairs[pair].name, pairs[pair].rate) == (name, pytest.approx(18 * 26.562e9))


def test_theory_of_links_that_are_not_plugged_in_is_that_of_the_others(connected: Any) -> None:
    _, pairs = connected(status(range(12), range(12), card="NVIDIA H100 PCIe"), matrix("NV12", "NV12"))
    assert pairs[0, 1] == Connection("NVLink, 12 links", pytest.approx(12 * 26.562e9))


# What is expected of a pair


def pair(rate: float, connection: Connection, access: bool = True) -> Measured:
    measured = Measured(connections={(0, 1): connection}, peers={(0, 1): {"access": access, "atomics": True}})
    measured.add("pair", "read", rate, to=1)
    expected.expect_from_theory(GPUS, measured)
    return measured


@pytest.mark.parametrize(
    ("connection", "access", "severities"),
    [
        (Connection("NVLink, 18 links", 478e9), True, ["pass", "critical"]),
        (Connection("PCIe through one PCIe switch", 63e9), True, ["pass", "pass"]),
        (Connection("PCIe through the link between NUMA nodes"), True, ["info", "info"]),
        (Connection("PCIe through one PCIe switch", 630e9), False, ["info", "info"]),  # copies go through the host
        (UNKNOWN, True, ["info", "info"]),
    ],
)
def test_a_pair_is_compared_with_its_connection(connection: Connection, access: bool, severities: list[str]) -> None:
    found = [
        findings.find_severity(figure)
        for rate in (374.0, 280.0)
        for figure in pair(rate, connection, access).figures.values()
    ]
    assert found == severities


def test_the_connection_is_a_finding() -> None:
    def said(connection: Connection, access: bool) -> tuple[str, str]:
        (found,) = (
            each
            for each in findings.find_topology(this_machine(), [], pair(1.0, connection, access))
            if "peer" in each.name
        )
        assert found.name == "pair/gpu 0 to gpu 1/peer access"
        return found.severity, found.meaning

    nvlink, pcie = Connection("NVLink, 18 links", 478e9), Connection("PCIe through a PCIe host bridge")
    assert said(nvlink, True) == (
        "pass", "The two are connected by NVLink, 18 links, and have access to each other's memory."
    )  # fmt: skip
    assert said(nvlink, False)[0] == "critical"
    assert said(pcie, False) == (
        "info", "The two are connected by PCIe through a PCIe host bridge, and do not have access to each other's "
        "memory: a copy goes through the host's memory.",
    )  # fmt: skip
    assert "NVLink, by its atomic operations" in said(UNKNOWN, True)[1]


def test_a_copy_with_a_wrong_bit_fails_the_machine(
    second_device: int, double: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_quick(monkeypatch)
    monkeypatch.setattr(measure, "MEASUREMENTS", {"pair": measure.MEASUREMENTS["pair"]})
    double.flip_copies(1)
    status, content = Check(tmp_path)()
    copy = of_id(content, "pair/gpu 0 to gpu 1/copy")
    assert (status, copy["severity"]) == (1, "critical")
    assert (
        "1 of 512 words are not those that were sent, and no call reported an error; at byte 2048 " in copy["meaning"]
    )
    assert copy["meaning"].endswith("(bits 2)")
    others = [f"pair/{way}" for way in ("gpu 0 to gpu 1/read", "gpu 0 to gpu 1/write", "gpu 1 to gpu 0/copy")]
    assert [of_id(content, id)["severity"] for id in others] == ["info"] * 3


@pytest.mark.parametrize(("memory", "nbytes"), [((8 << 20, 1 << 30), 512 << 10), ((1 << 30, 8 << 20), 512 << 10)])
def test_copies_between_two_gpus_take_a_sixteenth_of_the_smaller_ones_memory(
    memory: tuple[int, int], nbytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def peer_limits(*arguments: int) -> dict[str, Any]:
        asked.append(arguments)
        return {"access": True, "atomics": True, "ways": {}}

    facts = [{**each, "memory": size} for each, size in zip(FACTS, memory, strict=True)]
    monkeypatch.setattr(measure._core, "gpu_facts", lambda: facts)
    monkeypatch.setattr(measure._core, "peer_limits", peer_limits)
    measured = Measured(connections={(0, 1): UNKNOWN})
    measure.MEASUREMENTS["pair"](measured, None, 1)  # type: ignore[arg-type]
    assert asked == [(1, 0, nbytes, measure.PAIR_ROUNDS)]


@pytest.mark.parametrize(("gpu", "host"), [(80 << 30, 1 << 40), (80 << 30, 1 << 30), (1 << 30, 1 << 40)])
def test_additions_take_a_sixteenth_of_the_gpus_memory_and_a_quarter_of_the_hosts(
    gpu: int, host: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed = []

    def time(n: int, every: Any, limit: Any, sets: int) -> list[Any]:
        timed.append((n, sets))
        return [Samples(every[0], seconds=[1e-3])]

    monkeypatch.setattr(measure._core, "gpu_facts", lambda: [{**FACTS[0], "memory": gpu, "l2": 50 << 20}])
    monkeypatch.setattr(measure._machine, "memory_available", lambda: host)
    monkeypatch.setattr(measure.probes, "probe_device", lambda *of: {"read_gbps": 1.0, "write_gbps": 1.0})
    monkeypatch.setattr(measure.probes, "probe_latency", lambda gpu: {})
    measure.MEASUREMENTS["device"](Measured(), time, 0)
    most = min(gpu / 16, host / 4)
    wanted = [n for n in (1 << 20, 1 << 24, 1 << 28, 1 << 29) if 12 * n <= most]
    assert [n for n, sets in timed] == wanted
    assert wanted
    assert all(12 * n * sets <= most for n, sets in timed)


# NUMA


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two nodes, of which this process has all processors of the first one alone, and a GPU on each."""
    mine = sorted(os.sched_getaffinity(0))
    for number, (cpus, gib) in enumerate(((",".join(map(str, mine)), 256), ("4000-4003", 256))):
        node = tmp_path / "node" / f"node{number}"
        node.mkdir(parents=True)
        (node / "cpulist").write_text(f"{cpus}\n")
        (node / "meminfo").write_text(f"Node {number} MemTotal:       {gib << 20} kB\nNode {number} MemFree: 1 kB\n")
    for number, facts in enumerate(FACTS):
        device = tmp_path / "pci" / f"0000:{facts['pci_bus']:02x}:00.0"
        device.mkdir(parents=True)
        (device / "numa_node").write_text(f"{number}\n")
    monkeypatch.setattr(topology, "NODES", tmp_path / "node")
    monkeypatch.setattr(topology, "PCI", tmp_path / "pci")
    return tmp_path


def placed(measured: Measured | None = None) -> dict[str, Any]:
    found = findings.find_topology(replace(this_machine(), gpus=GPUS), FACTS, measured or Measured())
    return {each.name: each for each in found}


def test_nodes_are_read_from_sysfs(machine: Path) -> None:
    first, second = topology.numa_nodes()
    assert (first.cpus, first.memory) == (frozenset(os.sched_getaffinity(0)), 256 << 30)
    assert second.cpus == frozenset(range(4000, 4004))
    assert [topology.node_of_gpu(each) for each in FACTS] == [0, 1]
    assert topology.run_on_node(first, lambda: os.sched_getaffinity(0)) == first.cpus
    with pytest.raises(OSError, match="Invalid argument"):
        topology.run_on_node(second, os.getpid)


def test_nodes_are_ordered_by_their_numbers(machine: Path) -> None:
    for number in (10, 2):
        (machine / "node" / f"node{number}").mkdir()
    assert [node.number for node in topology.numa_nodes()] == [0, 1, 2, 10]


def test_work_on_a_node_stays_on_the_processors_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another affinity than a batch system's would take the processors of another job."""
    asked = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {1, 2})
    monkeypatch.setattr(os, "sched_setaffinity", lambda process, cpus: asked.append((process, set(cpus))))
    topology.run_on_node(topology.Node(0, frozenset({2, 3}), None), lambda: None)
    assert asked == [(0, {2})]


def test_a_node_of_memory_alone_and_one_with_more_than_others_lack_nothing(machine: Path) -> None:
    for number, gib in ((2, 512), (3, 16)):
        node = machine / "node" / f"node{number}"
        node.mkdir()
        (node / "cpulist").write_text("4004-4007\n" if number == 2 else "\n")
        (node / "meminfo").write_text(f"Node {number} MemTotal: {gib << 20} kB\n")
    found = placed()
    assert [found[f"numa/node {number}/memory"].severity for number in range(4)] == ["pass"] * 4
    assert found["numa/node 2/memory"].expected == (0.9 * (256 << 30), inf)
    assert found["numa/node 3/memory"].expected is None


def test_memory_of_gpus_and_of_cxl_is_no_other_nodes_measure(machine: Path) -> None:
    """Two nodes of 480 GiB with processors, and beside them four GPUs' memory, or two modules of CXL."""
    for number in (0, 1):
        (machine / "node" / f"node{number}" / "meminfo").write_text(f"Node {number} MemTotal: {480 << 20} kB\n")
    (machine / "pci" / "0000:9a:00.0" / "numa_node").write_text("5\n")  # the GPU's own memory
    for gib in (186, 1024):
        for number in (2, 3, 4, 5):
            node = machine / "node" / f"node{number}"
            node.mkdir(exist_ok=True)
            (node / "cpulist").write_text("\n")
            (node / "meminfo").write_text(f"Node {number} MemTotal: {gib << 20} kB\n")
        found = placed()
        assert {each.severity for each in found.values()} == {"pass"}
        assert [found[f"numa/node {number}/memory"].expected for number in (0, 1, 2)] == [
            (0.9 * (480 << 30), inf), (0.9 * (480 << 30), inf), None
        ]  # fmt: skip
    (machine / "node" / "node1" / "meminfo").write_text(f"Node 1 MemTotal: {360 << 20} kB\n")
    assert placed()["numa/node 1/memory"].severity == "warning"


def test_the_nodes_of_memory_and_gpus_are_told(machine: Path) -> None:
    found = placed()
    assert {id: each.severity for id, each in found.items()} == {
        "numa/node 0/memory": "pass",
        "numa/node 1/memory": "pass",
        "numa/gpu 0/node": "pass",
        "numa/gpu 1/node": "warning",  # this process may not run there
    }
    assert found["numa/gpu 1/node"].meaning.startswith("GPU 1 is plugged into node 1. This process may run on none")


def test_a_node_with_less_memory_and_a_gpu_nearer_to_another_are_warnings(machine: Path) -> None:
    (machine / "node" / "node1" / "meminfo").write_text(f"Node 1 MemTotal: {128 << 20} kB\n")
    measured = measured_of(*(figure_of("link", f"to the device from node {node}", 40.0 + 15 * node) for node in (0, 1)))
    found = placed(measured)
    assert found["numa/node 1/memory"].severity == "warning"
    assert "It has less memory than others" in found["numa/node 1/memory"].meaning
    assert found["numa/gpu 0/node"].meaning == (
        "GPU 0 is plugged into node 0. Copies from node 1 were faster: 55 against 40 GB/s."
    )


def test_what_sysfs_does_not_say_is_unknown(machine: Path) -> None:
    (machine / "node" / "node0" / "meminfo").unlink()
    (machine / "node" / "node1" / "cpulist").write_bytes(b"\xff\x00")
    (machine / "pci" / "0000:18:00.0" / "numa_node").write_text("-1\n")
    found = placed()
    assert [found[id].severity for id in ("numa/node 0/memory", "numa/gpu 0/node")] == ["unknown", "unknown"]
    for path in sorted((machine / "node").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    assert {id: each.severity for id, each in placed().items()} == {"numa/host/nodes": "unknown"}


def test_copies_are_measured_from_each_node(
    device: int, machine: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make_quick(monkeypatch)
    cpus = (machine / "node" / "node0" / "cpulist").read_text()
    (machine / "node" / "node1" / "cpulist").write_text(cpus)
    monkeypatch.setattr(measure, "_link_under_load", lambda gpu: H200)
    measured = Measured()
    measure.MEASUREMENTS["link"](measured, None, device)  # type: ignore[arg-type]
    names = {f"{way} node {node}" for way in ("to the device from", "to the host on") for node in (0, 1)}
    assert names <= {figure.params["what"] for figure in measured.figures.values()}
