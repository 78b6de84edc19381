"""
Models trained on the labels of other models
============================================

Each model is trained on labels that the previous model predicted. The errors accumulate, unless a share of the labels stays
real. How large must this share be?
"""

import limitlab as ll
from limitlab.plotting import finish, new_figure, readable_ticks, simulation_points, theory_line

# %%
# The left panel shows the excess risk over ten generations, for several shares of real labels. Points are chains of regressions with
# 100 features.

generations = tuple(range(1, 11))
figure, (left, right) = new_figure(columns=2)
for index, share in enumerate((0.0, 0.2, 0.5)):
    law = ll.laws.ModelCollapse(
        ratio=0.5, noise=0.5, ridge=0.02, real_share=share, generations=generations
    )
    theory_line(left, generations, law.theory().excess_risk, index, f"{share:.0%} real labels")
    runs = law.simulate_batch(100, range(6)).excess_risk
    simulation_points(left, generations, runs.mean("seed"), runs.std("seed", ddof=1) / 6**0.5, index)
finish(left, "generation", "excess risk", yscale="log")
readable_ticks(left)

# %%
# The right panel has no penalty. If each model is trained on the data of all generations so far, the error stays bounded.

for index, data in enumerate(("replace", "accumulate")):
    law = ll.laws.ModelCollapse(ratio=0.5, noise=0.5, ridge=0.0, data=data, generations=generations)
    theory_line(right, generations, law.theory().excess_risk, 3 + index, data)
    runs = law.simulate_batch(100, range(3)).excess_risk
    simulation_points(right, generations, runs.mean("seed"), runs.std("seed", ddof=1) / 3**0.5, 3 + index)
finish(right, "generation", "excess risk", "least squares, no real labels after the first", yscale="log")
readable_ticks(right)
