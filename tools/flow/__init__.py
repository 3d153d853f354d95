"""How much code one operation passes through: the files, the functions and the depth of their calls.

`python -m tools.flow` measures each flow on the thread that calls it, after a run that warms it up, and prints a table;
`--json` prints the same for programs, and names choose flows. Those on Spark need PySpark and Java 17 to 22.
"""

from .flows import FLOWS, SPARK_FLOWS
from .limits import LIMITS, Limit
from .passage import Passage, measure, measure_flow

__all__ = ["FLOWS", "LIMITS", "SPARK_FLOWS", "Limit", "Passage", "measure", "measure_flow"]
