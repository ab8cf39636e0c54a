"""A hand-made record: a fused edge, a missed one, a superseded one, an eliminated node and a host op."""

from __future__ import annotations

from fuseline.report.records import CompileRecord, Decision, DispatchRecord, HostOpRecord, MemberRecord


def _decision(rule: str, producer: tuple[str, str], consumer: tuple[str, str], **fields: object) -> Decision:
    return Decision(
        rule=rule,
        producer=f"%{producer[0]}",
        consumer=f"%{consumer[0]}",
        producer_op=producer[1],
        consumer_op=consumer[1],
        producer_nodes=(producer[0],),
        consumer_nodes=(consumer[0],),
        **fields,  # pyright: ignore[reportArgumentType]
    )


CONV, RELU, MATMUL = ("Conv_0", "convolution"), ("Relu_1", "elementwise"), ("MatMul_2", "contraction")

RECORD = CompileRecord(
    model="tiny",
    target="cpu",
    threads=2,
    dispatches=[
        DispatchRecord(
            name="main_dispatch_0",
            executable="ex0",
            root="convolution",
            family="convolution",
            flops=2_000_000,
            bytes_read=4096,
            bytes_written=1024,
            members=[
                MemberRecord(id="%Conv_0", kind="convolution", role="root", nodes=("Conv_0",)),
                MemberRecord(id="%Relu_1", kind="elementwise", role="epilogue", nodes=("Relu_1",)),
            ],
        ),
        DispatchRecord(
            name="main_dispatch_1",
            executable="ex1",
            root="contraction",
            members=[MemberRecord(id="%MatMul_2", kind="contraction", role="root", nodes=("MatMul_2",))],
        ),
    ],
    decisions=[
        _decision(
            "elementwise-epilogue", CONV, RELU, verdict="fused", dispatch="main_dispatch_0", numbers={"gain": 2048.0}
        ),
        _decision(
            "elementwise-epilogue",
            RELU,
            MATMUL,
            verdict="missed",
            code="consumer-reduces",
            detail="an epilogue is all-parallel",
            numbers={"bytes_saved": 1_200_000.0},
        ),
        _decision(
            "horizontal",
            CONV,
            MATMUL,
            verdict="superseded",
            code="superseded",
            detail="Conv_0's group <changed> & grew",
        ),
    ],
    host_ops=[HostOpRecord(node="NonZero_4", op_type="NonZero", reason="its result's shape depends on the data")],
    source_nodes=["Conv_0", "Relu_1", "MatMul_2", "Dropout_3", "NonZero_4"],
    eliminated={"Dropout_3": "fold-constants"},
    statistics={"dispatches": 2, "bytes_moved": 123_456, "edges": {"fused": 1, "missed": {"consumer-reduces": 1}}},
    phase_seconds={"frontend": 0.01, "fusion": 0.002},
)
