"""The filter language: one grammar and one meaning for records, answers and variables of runs.

`grammar` reads the tree, `operators` and `forms` say what there is to compare, `operands` makes
conditions of operators and operands, `memory` is their meaning for values at hand. Each user of the
language says what a leaf names: `models.data.records` gives fields, and the same meaning in SQL;
`models.automation.automations` gives paths into JSON values.
"""
