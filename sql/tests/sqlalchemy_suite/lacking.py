"""What HerdDB 0.29 lacks, with the tests of SQLAlchemy that need it. docs/connect.md has the same list; a test compares the two."""

from __future__ import annotations

from typing import Any

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

LACKING: dict[str, tuple[str, ...]] = {
    "temporary tables": ("temporary_tables", "temp_table_reflection"),
    "a time of a day": ("time", "time_microseconds", "time_implicit_bound"),
    "times finer than a millisecond": ("datetime_microseconds", "timestamp_microseconds"),
    "parameters as columns of a result (`SELECT ?`)": ("standalone_binds", "date_implicit_bound", "datetime_implicit_bound"),
    "names of columns with other signs than letters, digits and `_`": ("unusual_column_name_characters", "symbol_names_w_double_quote"),
    "EXCEPT": ("except_",),
    "parentheses around the parts of a UNION": (
        "parens_in_union_contained_select_w_limit_offset",
        "parens_in_union_contained_select_wo_limit_offset",
    ),
    "LIMIT and OFFSET by an expression": ("sql_expression_limit_offset",),
    "decimals: numbers with decimals are doubles": (
        "implicit_decimal_binds",
        "numeric_received_as_decimal_untyped",
        "precision_numerics_general",
        "precision_numerics_enotation_large",
        "precision_numerics_enotation_small",
        "precision_numerics_many_significant_digits",
        "precision_numerics_retains_significant_digits",
    ),
    "foreign keys of a table to itself, but for those with `use_alter=True`": (
        "self_referential_foreign_keys",
        "recursive_fk_cascade",
    ),
    "ON UPDATE of foreign keys": ("on_update_cascade",),
    "views, and CREATE TABLE … AS": ("views", "view_column_reflection", "view_reflection"),
    "descending indexes": ("indexes_with_ascdesc", "reflect_indexes_with_ascdesc"),
}
"""What is missing, and the requirements of the suite that stand for it."""

LEFT_OUT: dict[str, tuple[str, ...]] = {
    "foreign keys of a table to itself, but for those with `use_alter=True`": ("CTETest",),
    "views, and CREATE TABLE … AS": ("TableViaSelectTest", "HasTableTest", "ComponentReflectionTest::test_get_view_names"),
    "`||`, which puts texts together; so `startswith`, `endswith` and `contains` of SQLAlchemy, too": (
        "StringTest::test_concatenate_binary",
        "StringTest::test_concatenate_clauselist",
        "OrderByLabelTest::test_composed_multiple",
        "LikeFunctionsTest",
    ),
    "WHERE without FROM": ("IntegerTest::test_huge_int_auto_accommodation", "ExistsTest"),
    "parameters as columns of a result (`SELECT ?`)": (
        "NumericTest::test_float_coerce_round_trip",
        "TrueDivTest::test_truediv_integer_bound",
        "TrueDivTest::test_floordiv_integer_bound",
        "FetchLimitOffsetTest::test_limit_render_multiple_times",
    ),
    "FLOOR of a number: it ends the connection": (
        "TrueDivTest::test_floordiv_integer",
        "TrueDivTest::test_floordiv_numeric",
    ),
    "whole numbers of more than 64 bits": ("TrueDivTest::test_truediv_divisor",),
    "capital letters in names: they become small ones": (
        "NameDenormalizeTest",
        "ComponentReflectionTest::test_get_unique_constraints_quoted_name",
        "ComponentReflectionTest::test_get_indexes_quoted_name",
        "ComponentReflectionTest::test_get_foreign_keys_quoted_name",
    ),
    "lengths of texts, and precisions of numbers": (
        "ComponentReflectionTestExtra::test_string_length_reflection",
        "ComponentReflectionTestExtra::test_numeric_reflection",
    ),
    "a ROLLBACK of CREATE INDEX: the index stays": ("HasIndexTest::test_has_index",),
    "identity columns (`auto_increment` is there)": ("IdentityAutoincrementTest",),
}
"""The same for tests that no requirement stands for, `class::test` or a class alone."""

OTHER_TEXT = (
    "PostCompileParamsTest::test_compile",
    "PostCompileParamsTest::test_compile_literal_binds",
    "PostCompileParamsTest::test_execute",
    "PostCompileParamsTest::test_execute_expanding_plus_literal_execute",
    "DistinctOnTest",
)
"""They compare the text of statements, in which this dialect quotes every name."""

HAS = (
    "autocommit",
    "ctes",
    "datetime_timezone",
    "dbapi_lastrowid",
    "foreign_key_constraint_name_reflection",
    "foreign_key_constraint_option_reflection_ondelete",
    "isolation_level",
    "unique_constraints_reflect_as_index",
    "unique_index_reflect_as_unique_constraints",
    "infinity_floats",
    "boolean_col_expressions",
)
"""What not every database has, and HerdDB does."""


class Requirements(SuiteRequirements):
    """What of SQLAlchemy's tests HerdDB can pass."""

    def get_isolation_levels(self, config: Any) -> dict[str, Any]:
        """For the tests of them."""
        return {"default": "READ COMMITTED", "supported": ["AUTOCOMMIT", "READ COMMITTED", "REPEATABLE READ"]}


for _lacks, _names in LACKING.items():
    for _name in _names:
        setattr(Requirements, _name, property(lambda _, why=_lacks: exclusions.skip_if(lambda _: True, f"HerdDB lacks {why}")))
for _name in HAS:
    setattr(Requirements, _name, property(lambda _: exclusions.open()))


def why_left_out(test: str) -> str | None:
    """`test` is `class::test`, without parameters. None: it is to be run."""
    if test in OTHER_TEXT or test.partition("::")[0] in OTHER_TEXT:
        return "names without quotes"
    return next((why for why, tests in LEFT_OUT.items() if test in tests or test.partition("::")[0] in tests), None)
