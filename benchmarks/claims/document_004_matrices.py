"""Claims of document 004 about transposes and products of matrices on an RTX 4060 Ti."""

from benchmarks.claims.claim import Claim, Verdict
from benchmarks.claims.picks import matrix, profile
from benchmarks.claims.quantities import (
    Is,
    Recorded,
    about,
    at_least,
    at_most,
    digits,
    figure,
    from_rows,
    gain,
    param_ratio,
    percent,
    plain,
    printed,
    seconds_of,
)
from vecadd.bench import recorded
from vecadd.bench.show import show_gain

_NAIVE, _SHARED, _TILED, _TUNED = (recorded.SGEMM[f"sgemm_{name}"] for name in ("naive", "shared", "tiled", "tuned"))
_SGEMM = ("sgemm_naive", "sgemm_shared", "sgemm_tiled", "sgemm_tuned")

# Of its RTX 4060 Ti: multiprocessors and threads of one, as it says; registers of one, as of every GPU since 2012.
_MULTIPROCESSORS, _THREADS, _REGISTERS = 34, 1536, 65536


def _blocks_by_registers(column: dict[str, str]) -> int:
    """Blocks on a multiprocessor of its card, whose warps take registers in steps of eight a thread."""
    registers = -(-int(column["registers"]) // 8) * 8
    return min(_REGISTERS // (registers * int(column["block"])), _THREADS // int(column["block"]))


def _occupancy(column: dict[str, str]) -> str:
    return f"{100 * _blocks_by_registers(column) * int(column['block']) / _THREADS:.2f}"


def _of_occupancy(column: dict[str, str]) -> Claim:
    return Claim(
        f"{column['registers']} registers a thread allow {column['occupancy']} % of occupancy in blocks of "
        f"{column['block']}",
        f"{column['occupancy']} %",
        printed(lambda: _occupancy(column), lambda share: f"{share} %"),
        Is(f"{float(column['occupancy']):.2f}"),
        why="It follows from 65536 registers and 1536 threads a multiprocessor.",
    )


def _closed_form(i: int, j: int, inner: int) -> float:
    return inner * (inner - 1) * (2 * inner - 1) / 6 + (i - j) * inner * (inner - 1) / 2 - inner * i * j


def _right_sums() -> bool:
    """Whether its closed form is the product of its factors, A[i][k] = i + k and B[k][j] = k - j."""
    places = [(i, j, inner) for i in range(5) for j in range(5) for inner in (1, 7, 64)]
    return all(_closed_form(i, j, inner) == sum((i + k) * (k - j) for k in range(inner)) for i, j, inner in places)


def _elements(column: dict[str, str], side: int) -> int:
    """Elements of the product that its grid makes by squares of that side."""
    return int(column["grid"]) * side * side


def _fastest(rows: Recorded) -> float:
    """The occupancy of the fastest product."""
    best = min(_SGEMM, key=lambda rung: seconds_of(rows.row(matrix(rung))))
    return float(rows.param(matrix(best), "occupancy"))


CLAIMS = (
    Claim(
        "Shared memory makes the transpose nearly 30 % faster",
        digits(figure("transpose_naive", "004c"), figure("transpose_shared", "004c")),
        gain(matrix("transpose_naive"), matrix("transpose_shared")),
        about(figure("transpose_naive", "004c") / figure("transpose_shared", "004c"), 0.2),
        why_not="Without padding a column of its tile lies in one bank, which costs an H200 more than stores "
        "that fill a quarter of their sectors.",
        otherwise=Verdict.ON_ITS_CARD,
    ),
    Claim(
        "Shared memory has no need of coalescing, so that a column of it is as good as a row",
        "`tile[32][32]`",
        gain(matrix("transpose_shared"), matrix("transpose_padded")),
        at_most(1.1),
        why_not="It has 32 banks: one unused element behind each row spreads a column over all of them.",
    ),
    Claim(
        "A transpose is bound by its uncoalesced stores: a copy of the same size is faster",
        "no figure",
        gain(matrix("transpose_naive"), matrix("transpose_copy")),
        at_least(1.3),
        why="Each store of a warp touches 16 sectors and fills a quarter of each.",
    ),
    Claim(
        "The transpose falls from 21 to 15 ms",
        "21 to 15 ms in its text, 30 to 21 in its table",
        printed(
            lambda: (figure("transpose_naive", "004c"), figure("transpose_shared", "004c")), lambda pair: digits(*pair)
        ),
        Is((21e-3, 15e-3)),
        why_not="Its table and its text disagree.",
        otherwise=Verdict.SLIP,
    ),
    Claim(
        "The matrix goes up in 166 ms and comes down in 162",
        "166 up and 162 down in its text, 162 up and 166 down in its table",
        printed(lambda: (162, 166), lambda pair: f"{pair[0]} up and {pair[1]} down"),
        Is((166, 162)),
        why_not="Its table and its text exchange the two.",
        otherwise=Verdict.SLIP,
    ),
    Claim(
        "The copies of its transpose take 328 ms",
        "166 and 162 ms",
        printed(lambda: 166 + 162, str),
        Is(328),
        why="It is their sum.",
    ),
    Claim(
        "Its transpose is of 1024 by 512 elements",
        "nx = 1024, ny = 512, and 162 ms for one copy",
        printed(lambda: 1024 * 512 * 4 / 0.162 / 1e9, lambda rate: f"{rate:.3g} GB/s"),
        at_least(1),
        why_not="Two MiB in 162 ms are no rate of a link: its times are of a matrix a thousand times larger.",
        otherwise=Verdict.SLIP,
    ),
    Claim(
        "Shared memory takes 26 % off the product's time",
        f"{_NAIVE['ms']} and {_SHARED['ms']} ms",
        printed(lambda: 1 - float(_SHARED["ms"]) / float(_NAIVE["ms"]), percent),
        about(0.26, 0.02),
        why="It is the ratio of its milliseconds.",
    ),
    Claim(
        "From the naive product to shared memory",
        show_gain(float(_NAIVE["ms"]) / float(_SHARED["ms"])),
        gain(matrix("sgemm_naive"), matrix("sgemm_shared")),
        about(float(_NAIVE["ms"]) / float(_SHARED["ms"])),
        why="In both a multiprocessor issues one warp's load a cycle; in the second the compiler joins four loads of "
        "shared memory.",
    ),
    Claim(
        "More results a thread are worth a lower occupancy: from shared to tiled",
        f"{_SHARED['ms']} and {_TILED['ms']} ms",
        gain(matrix("sgemm_shared"), matrix("sgemm_tiled")),
        at_least(2),
        why="Each element that a thread reads from shared memory serves eight multiplications.",
    ),
    Claim(
        "Smaller tiles double the occupancy and take 6 % off the time",
        f"{_TILED['ms']} and {_TUNED['ms']} ms",
        printed(
            lambda: _elements(_TUNED, 64) / _elements(_TILED, 128), lambda ratio: f"{ratio:.0f} x as many elements"
        ),
        Is(1),
        why_not="By its grids the first column makes 2^20 elements of a product and the second 2^27: the two do not "
        "compare.",
        otherwise=Verdict.SLIP,
    ),
    Claim(
        "Smaller tiles with twice the occupancy are a little faster",
        show_gain(float(_TILED["ms"]) / float(_TUNED["ms"])),
        gain(matrix("sgemm_tiled"), matrix("sgemm_tuned")),
        at_least(1.02),
        why_not="At the same size they are slower, because each element read serves half as many multiplications.",
    ),
    Claim(
        "To chase occupancy at the cost of a thread's results makes the whole slower",
        "no figure",
        gain(matrix("sgemm_tiled"), matrix("sgemm_tuned")),
        at_most(0.98),
        why="Each element read from shared memory serves half as many multiplications.",
    ),
    Claim(
        "50 to 60 % of occupancy are enough for a product",
        "50 to 60 %",
        from_rows(_fastest, percent),
        at_most(0.6),
        why="The fastest product has even less: a thread's 64 independent sums hide its own waits.",
    ),
    Claim(
        "A grid of 64 blocks is 0.9 waves",
        "0.9 waves",
        printed(lambda: int(_TILED["grid"]) / _blocks_by_registers(_TILED) / _MULTIPROCESSORS, plain),
        about(0.9, 0.06),
        why="Two blocks fit on each of 34 multiprocessors.",
    ),
    Claim(
        "At 0.9 waves each multiprocessor has at most one block",
        f"{_TILED['achieved']} % of achieved occupancy",
        printed(lambda: float(_TILED["achieved"]) / 100 * _THREADS / int(_TILED["block"]), plain),
        at_most(1),
        why_not="Its occupancy is that of nearly two blocks, and two fit.",
        otherwise=Verdict.SLIP,
    ),
    *(_of_occupancy(column) for column in (_NAIVE, _SHARED, _TILED, _TUNED)),
    Claim(
        "A block of the shared product takes 8.19 KB of shared memory",
        f"{_SHARED['shared']} KB",
        printed(lambda: f"{32 * 32 * 4 * 2 / 1000:.2f}", lambda size: f"{size} KB"),
        Is(_SHARED["shared"]),
        why="Two squares of 32 by 32 elements of 4 bytes.",
    ),
    Claim(
        "One result a thread takes 15 reads in matrices of 7 by 7, four results 32",
        "15 and 32",
        printed(lambda: (7 + 7 + 1, 2 * 7 + 2 * 7 + 4), lambda pair: f"{pair[0]} and {pair[1]}"),
        Is((15, 32)),
        why="Two rows and two columns serve four results.",
    ),
    Claim(
        "The product of its factors has a closed form",
        "`K(K-1)(2K-1)/6 + (i-j)K(K-1)/2 - Kij`",
        printed(_right_sums, lambda right: "equal in 75 places" if right else "not equal"),
        Is(True),
        why="It is the sum of (i + k)(k - j).",
    ),
    Claim(
        "Shared memory takes the load off the DRAM",
        f"{_NAIVE['dram']} to {_SHARED['dram']} %",
        param_ratio(profile("sgemm_naive"), profile("sgemm_shared"), "metrics", "dram"),
        at_least(1.5),
        why="Each element comes less often from memory.",
        why_not="The L1 and the L2 of an H200 already keep what shared memory would.",
        otherwise=Verdict.ON_ITS_CARD,
    ),
)
