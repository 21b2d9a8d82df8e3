"""What methods refuse: in one line that names the key, at the latest before the first round."""

import pytest

from fkl.basics.errors import FklError
from fkl.conformance.promises import quick_run, trace_rounds
from fkl.runs.prepare import prepare_run

POLYNOMIAL = "kernels.family=polynomial kernels.N=1 kernels.smallest=2 kernels.largest=2 kernels.laplacians=0"
DIGITS = "dataset=digits kernels.D=20 kernels.smallest=0.5"
PARTIES = "dataset=diabetes algo.loss=square partition.parties=3"
GIVEN = f"{PARTIES} partition.how=given"
REFUSED = [
    ("algo=pof_mkl kernels.N=5 algo.M=6", "algo.M=6"),
    ("algo=ofskl kernels.N=5", "kernels.N=5"),
    ("algo=perfedavg algo.parameters=5", "parameters=5"),
    ("algo=fomd_oms kernels.N=5 algo.J=1", "algo.J=1"),
    ("algo=fomd_oms kernels.N=5 algo.J=6", "algo.J=6"),
    ("algo=fomd_oms kernels.N=5 algo.norms=[1,2]", "algo.norms="),
    ("algo=raker partition=iid partition.clients=4", "partition.clients=4"),
    (f"algo=raker {POLYNOMIAL}", "kernels.family=polynomial"),
    (f"algo=omkl_sfg {POLYNOMIAL} algo.M=1", "kernels.family=polynomial"),
    ("algo=omkl_sfg kernels.N=7 kernels.laplacians=0 algo.M=8", "algo.M=8"),
    ("algo=omkl_sfg_r kernels.N=7 kernels.laplacians=0 algo.M=3 algo.rank=8", "algo.rank=8"),
    ("algo=odkla kernels=rbf", "kernels.N=51"),
    ("algo=coke kernels=rbf", "kernels.N=51"),
    ("algo=odkla ~topology", "topology=None"),
    ("algo=qc_odkla network.loss=0.1", "network.loss=0.1"),
    ("algo=dekrr_ddrf network.loss=0.1", "network.loss=0.1"),
    ("algo=dekrr_ddrf participation=share", "participation=Share"),
    ("algo=dekrr_ddrf privacy=local privacy.clip=1", "privacy=Local"),
    ("algo=dekrr_ddrf kernels.draw=orthogonal", "kernels.draw=orthogonal"),
    ("algo=dekrr_ddrf kernels.map=pairs", "kernels.map=pairs"),
    ("algo=dekrr_ddrf topology=directed", "topology=Directed"),
    ("algo=falkon privacy=local privacy.clip=1", "privacy=Local"),
    ("algo=falkon participation=share", "participation=Share"),
    ("algo=falkon kernels.N=2 kernels.largest=3", "kernels.N=2"),
    ("algo=fedavg kernels=coke algo.loss=softmax algo.iterations=3 dataset=ellipses", "the target has 2 values"),
    (f"algo=fed3r {DIGITS} intervals=split", "intervals=Split"),
    ("algo=fdskl algo.gamma=10 algo.lam=0.1", "algo.gamma=10"),
    ("algo=fdskl algo.features=2 algo.bank=7", "algo.bank=7"),
    ("algo=fdskl algo.batch=1000", "batch=1000"),
    ("algo=fdskl dataset=diabetes algo.loss=logistic", "loss=logistic"),
    (f"algo=fdskl {POLYNOMIAL}", "kernels.family=polynomial"),
    ("algo=fdskl kernels.N=3 kernels.largest=3", "kernels.N=3"),
    (f"algo=fdskl {PARTIES} partition.test_share=0.0001", "partition.test_share"),
    (f"algo=fdskl {PARTIES} partition.parties=11", "partition.parties=11"),
    (f"algo=fdskl {GIVEN} partition.groups=[[0,1],[2,1],[3,4,5,6,7,8,9]]", "partition.groups"),
    (f"algo=fdskl {GIVEN} partition.groups=[[0,1],[2],[3]]", "partition.groups"),
    ("algo=secureboost dataset=diabetes algo.learning_rate=2.1", "learning_rate=2.1"),
    ("algo=fd_svrg algo.batch=1000", "batch=1000"),
    ("algo=parsimonious_federated algo.box=[[0.0],[1.0]]", "box="),
    ("algo=parsimonious_federated algo.widths=[1,-1]", "widths="),
    ("algo=parsimonious_federated algo.widths=[1,1]", "widths="),
    ("algo=parsimonious_federated algo.widths=[1] algo.box=[[1,1],[0,0]]", "box="),
]


@pytest.mark.parametrize(("words", "said"), REFUSED)
def test_what_a_method_cannot_do_is_refused(words: str, said: str) -> None:
    with pytest.raises(FklError, match=f"^{said}") as refused:
        trace_rounds(prepare_run(quick_run(*words.split())), (0,))
    assert "\n" not in str(refused.value)
