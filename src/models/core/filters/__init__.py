"""The filter language: one grammar and one meaning for records, answers and variables of runs.

`grammar` reads the tree, and says what forms and operators there are. `operands` makes conditions
of operators and operands; `evaluation` is their meaning for values at hand. `shapes` describes
filters in the document. Each user of the language says what a leaf names: `models.data.records`
gives fields, and the same meaning in SQL; `models.automation.automations` gives paths into JSON
values.
"""
