"""Delimited text as Excel, LibreOffice and RFC 4180 mean it."""

import bz2
import csv
import gzip
import io
import lzma
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.sources.readers.opening import open_table
from activities.sources.readers.table import Table
from models.data.fields.rules.fields import FieldKind
from models.data.record_exports.rules import csv_cell
from models.sources.tabular.rules.columns import profiles
from models.sources.tabular.rules.formats import Conventions, Declared
from models.sources.tabular.rules.options import ErrorKind, ReadOptions, SourceProblem, TableFormat

ROWS = [("Nut, small", "1"), ("Bolt", "2")]


def opened(path: Path, content: bytes | str, **options: Any) -> Table:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return open_table([path], ReadOptions(**{"format": TableFormat.CSV, **options}))


def grid(table: Table) -> list[list[Any]]:
    return [[*table.headers], *map(list, table.rows())]


def problem(path: Path, content: bytes | str, **options: Any) -> SourceProblem:
    with pytest.raises(SourceProblem) as raised:
        grid(opened(path, content, **options))
    return raised.value


@pytest.mark.parametrize("delimiter", [";", ",", "|", "\t", "^", ":"])
@pytest.mark.parametrize("stated", ["sep={}", '"sep={}"', "SEP={}", "Sep={}", "sep={} "])
@pytest.mark.parametrize("end", ["\r\n", "\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_the_first_line_states_the_delimiter(
    tmp_path: Path, delimiter: str, stated: str, end: str, encoding: str
) -> None:
    lines = [stated.format(delimiter), *(delimiter.join(row) for row in [("A", "B"), ("1", "x")])]
    content = "".join(line + end for line in lines).encode(encoding)
    assert grid(opened(tmp_path / "file", content)) == [["A", "B"], ["1", "x"]]
    assert grid(opened(tmp_path / "file", content, header_row=0)) == [
        ["A", "B"],
        ["A", "B"],
        ["1", "x"],
    ]
    named = grid(opened(tmp_path / "file", content, encoding=encoding.removesuffix("-sig")))
    assert named == [["A", "B"], ["1", "x"]]


def test_a_delimiter_that_is_chosen_wins(tmp_path: Path) -> None:
    content = "sep=;\nA;1,B\n"
    assert opened(tmp_path / "file", content).headers == ["A", "1,B"]
    assert opened(tmp_path / "file", content, delimiter=",").headers == ["A;1", "B"]
    assert opened(tmp_path / "file", content, format=TableFormat.TSV).headers == ["A", "1,B"]


@pytest.mark.parametrize(
    "header", ["separator", "sep", "sep=", "sep=a", "sep=ab", "sep=;x", "x sep=;"]
)
def test_other_first_lines_are_headers(tmp_path: Path, header: str) -> None:
    table = opened(tmp_path / "file", f"{header}\nx\n", delimiter="|")
    assert table.headers == [header]


@pytest.mark.parametrize("content", ["sep=;", "sep=;\n", '"sep=,"\r\n\r\n', ",,\n,", "\ufeffsep=;"])
def test_a_file_without_a_value_is_refused(tmp_path: Path, content: str) -> None:
    found = problem(tmp_path / "file", content, delimiter="auto")
    assert found.kind is ErrorKind.PARSE
    assert found.message == "The file has no line with a value."


@pytest.mark.parametrize("blank", ["", ",", ",,,", "  ", " , ", "\t", '""', '"",""'])
@pytest.mark.parametrize("before", ["", "sep=,\n"])
def test_blank_lines_above_the_header_are_passed_over(
    tmp_path: Path, blank: str, before: str
) -> None:
    content = f"{before}{blank}\n{blank}\r\nName,Qty\na,1\n"
    assert grid(opened(tmp_path / "file", content)) == [["Name", "Qty"], ["a", "1"]]


@pytest.mark.parametrize("lead", ["", "\n\n", ",,\n", "sep=,\n", "sep=,\n\n"])
@pytest.mark.parametrize(
    ("header_row", "expected"),
    [
        (0, [["A", "B"], ["Prices", None], ["Name", "Qty"], ["a", "1"]]),
        (1, [["Prices", "B"], ["Name", "Qty"], ["a", "1"]]),
        (2, [["Name", "Qty"], ["a", "1"]]),
        (3, [["Name", "Qty"], ["a", "1"]]),
    ],
)
def test_the_row_of_headers_counts_from_the_first_line_with_a_value(
    tmp_path: Path, lead: str, header_row: int, expected: list[list[Any]]
) -> None:
    content = f"{lead}Prices\n\nName,Qty\na,1\n"
    assert grid(opened(tmp_path / "file", content, header_row=header_row)) == expected


UNCLOSED = [
    ('Name,Note\nx,y\na,"5 inch\nb,2\nc,3\n', 3),
    ('Name,Note\r\nx,y\r\na,"5 inch\r\nb,2\r\n', 3),
    ('sep=,\r\nName,Note\r\na,"5 inch\r\nb,2\r\n', 3),
    ('\n\n,\nName,Note\na,"5 inch', 5),
    ('Name,Note\na,"', 2),
    ('Name,Note\na,"\n', 2),
    ('Name,Note\n"two\nlines","5 inch\nb,2\n', 3),
    ('Name,Note\n"two\n\n""lines""","5 inch ""x""\nb,2\n', 4),
    ('"Name,Note\na,1\n', 1),
    ('Name,Note\na,"5 inch\nb,2\nc,"6 inch\nd,4\n', 2),
    ('Name,Note\n"a,1\nb,2\n"c,3\n', 2),
    ('Name,Note\na,"5 inch\n' + "b,2\n" * 50_000, 2),
]


@pytest.mark.parametrize(("content", "line"), UNCLOSED, ids=range(len(UNCLOSED)))
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_quotation_mark_that_nothing_closes_is_refused(
    tmp_path: Path, content: str, line: int, encoding: str
) -> None:
    found = problem(tmp_path / "file", content.encode(encoding), delimiter=",")
    assert found.kind is ErrorKind.PARSE
    assert f"that begins a cell in line {line} is not closed" in found.message


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ('"two\nlines"', "two\nlines"),
        ('"two\r\n\r\nlines"', "two\r\n\r\nlines"),
        ('"say ""yes"""', 'say "yes"'),
        ('"a, b"', "a, b"),
        ('5" pipe', '5" pipe'),
        ('5"', '5"'),
        ('5 "x" 6', '5 "x" 6'),
        ('"quoted" then', "quoted then"),
        ('"two\nlines" ', "two\nlines "),
        ('"a\n5" pipe', "a\n5 pipe"),
        ('"\n"', None),
        ('"' + "line\n" * 6_000 + '"', "line\n" * 6_000),
    ],
)
@pytest.mark.parametrize("last", [False, True])
def test_quotation_marks_that_are_meant_are_read(
    tmp_path: Path, written: str, value: str | None, last: bool
) -> None:
    content = f"Name,Note\n{written},{written}\n{'' if last else 'x,y'}"
    rows = [[value, value]] if last else [[value, value], ["x", "y"]]
    assert grid(opened(tmp_path / "file", content, delimiter=",")) == [["Name", "Note"], *rows]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32", "utf-32-be", "utf-32-le"])
@pytest.mark.parametrize("names", ["Name,Qty", "Näme,Qty", "É,Qty", "sep=,\r\nName,Qty"])
def test_an_encoding_shows_in_its_zeros(tmp_path: Path, encoding: str, names: str) -> None:
    content = f"{names}\r\nKöln,1\r\n" + "東京,2\r\n" * 20_000
    table = opened(tmp_path / "file", content.encode(encoding))
    assert table.encoding == encoding
    assert grid(table)[1:3] == [["Köln", "1"], ["東京", "2"]]


CHARSETS = [
    ("cp1252", "Name\nKöln\n"),
    ("cp1252", "Nom,Ville\nHélène,Genève\nJérôme,Nîmes\n"),
    ("cp1252", "Nom,Ville\nHélène,Genève\n"),
    ("cp1252", "Nom\nHélène\n"),
    ("cp1252", "Price\n5 £\n"),
    ("cp1252", "Nombre,Ciudad\nIñigo,A Coruña\nMuñoz,Logroño\n"),
    ("cp1252", "Nome,Città\nNiccolò,Forlì\nLucia,Cefalù\n"),
    ("cp1252", "Nome,Cidade\nJoão,São Paulo\nInês,Brasília\n"),
    ("cp1252", "Navn,By\nSøren,Århus\nBjørn,Tromsø\n"),
    ("cp1252", "Nimi,Kaupunki\nPäivi,Hyvinkää\n"),
    ("cp1252", "Name,Price\na,5 €\nb,“x”\n"),
    ("cp1252", "Ort,Plz\n" + "Berlin,10115\n" * 50 + "Köln,50667\n"),
    ("cp1250", "Imię,Miasto\nŁukasz,Łódź\nGrażyna,Poznań\n"),
    ("cp1250", "Név,Város\nGyőző,Győr\nÁrpád,Hódmezővásárhely\n"),
    ("cp1250", "Imię\nWałęsa\n"),
    ("cp1250", "Jméno\nJiří\n"),
    ("cp1251", "Имя,Город\nИван,Москва\nПётр,Тверь\n"),  # noqa: RUF001
    ("koi8-r", "Имя,Город\nИван,Москва\nПётр,Тверь\n"),  # noqa: RUF001
    ("cp1253", "Όνομα,Πόλη\nΓιώργος,Αθήνα\n"),  # noqa: RUF001
    ("cp1254", "Ad,Şehir\nİpek,Muğla\nGülşen,Iğdır\n"),  # noqa: RUF001
    ("cp1255", "שם,עיר\nדוד,חיפה\n"),  # noqa: RUF001
    ("cp1256", "اسم,مدينة\nمحمد,القاهرة\n"),
    ("cp1257", "Vardas,Miestas\nŽygimantas,Šiauliai\nEglė,Klaipėda\n"),
    ("shift_jis", "名前,数\n東京都,1\n大阪府,2\n"),
    ("euc_jp", "名前,数\n東京都,1\n大阪府,2\n"),
    ("gbk", "名称,数量\n北京市,1\n上海市,2\n"),
    ("big5", "名稱,城市\n王小明,台北市\n"),
    ("euc_kr", "이름,도시\n김철수,서울\n"),
    ("cp874", "ชื่อ,เมือง\nสมชาย,กรุงเทพ\n"),
    ("cp866", "Имя,Город\nИван,Москва\n"),  # noqa: RUF001
    ("iso8859-15", "Preis,x\n5 €,ü\n"),
    ("mac_roman", "Name,Größe\nMüller,5 €\nBjörn,7\n"),
    ("mac_roman", "Name\nKäse\n"),
    ("mac_roman", "Nom,Ville\nHélène,Genève\n"),
    ("mac_roman", "Grüße,x\n„Hallo“,1\n"),
    ("mac_roman", "Ort,Plz\nKÖLN,50667\nMÜNCHEN,80331\n"),
    ("cp437", "Name,Größe\nMüller,5\nBjörn,7\n"),
    ("cp850", "Name\nKäse\n"),
    ("cp850", "Prénom,Âge\nRené,5\nHélène,6\n"),
    ("cp850", "Nombre,Ciudad\nMuñoz,Logroño\n"),
    ("cp850", "Ort,Plz\nKÖLN,50667\n"),
    ("cp850", "Navn,By\nSøren,Århus\n"),
    ("cp852", "Imię,Ulica\nŁukasz,Żółta\n"),
    # Amounts alone tell no language.
    ("cp1252", "Name,Price\nTea,5\nMilk,€ 7\n"),
    ("cp1252", "Name,Price\nTea,€\xa05\nMilk,7\xa0€\n"),
    ("cp1252", "Name,Price\nTea,1\xa0234\xa0£\nMilk,¥7\n"),
    ("iso8859-15", "Name,Price\nTea,€\xa05\nMilk,7\xa0€\n"),
    ("iso8859-15", "Name,Price in €\nTea,5\n"),
    ("iso8859-15", "Name,Preis (€)\nMüsli,5\nKäse,7\n"),
    # Signs of Windows at the borders of words, and words with few letters, stay its own.
    ("cp1252", "Car,Price\nŠkoda,5 €\nCitroën,7\n"),
    ("cp1252", "Name,x\nNike®,“a”\nfoo–bar,…\n"),  # noqa: RUF001
    ("cp1252", "Name,x\nO’Brien,5°\nL’Hôpital,½\n"),  # noqa: RUF001
]


@pytest.mark.parametrize(("encoding", "content"), CHARSETS)
def test_an_encoding_that_nothing_says_is_recognized(
    tmp_path: Path, encoding: str, content: str
) -> None:
    rows = grid(opened(tmp_path / "file", content.encode(encoding)))
    assert rows == grid(opened(tmp_path / "file", content))


@pytest.mark.parametrize(
    ("encoding", "written_in", "cell"),
    [
        *((name, name, "ü") for name in ("mac_roman", "cp437", "cp850", "cp1250", "utf-16")),
        ("windows-1251", "cp1251", "ж"),
        ("x-mac-roman", "mac_roman", "ü"),
        ("MacRoman", "mac_roman", "ü"),
        ("IBM850", "cp850", "ü"),
        ("x-sjis", "shift_jis", "表"),
        ("Shift_JIS", "cp932", "①"),
        ("gb2312", "gbk", "镕"),
        ("ISO-8859-1", "cp1252", "5 €"),
        ("latin1", "latin-1", "\x81ü"),
        ("ISO-8859-15", "iso8859-15", "5 €"),
        ("ISO-8859-15", "cp1252", "5 €"),
        ("latin9", "cp1252", "“ü”"),
        ("ISO-8859-15", "iso8859-15", "\x81ü"),
        ("ISO-8859-2", "iso8859-2", "Ąś"),
        ("ISO-8859-2", "cp1250", "„Łódź”"),
        ("ISO-8859-7", "cp1253", "“Άλφα”"),
        ("TIS-620", "cp874", "“ก”"),
        ("utf-7", "utf-7", "ü"),
        ("cp1250", "utf-8", "ĂĽ"),
    ],
)
@pytest.mark.parametrize("by", ["encoding", "charset"])
def test_an_encoding_that_is_chosen_is_read_as_it_is_meant(
    tmp_path: Path, encoding: str, written_in: str, cell: str, by: str
) -> None:
    content = f"Name,Qty\n{cell},1\n".encode(written_in)
    if written_in == "utf-8":
        content, by = "Name,Qty\nü,1\n".encode(), "encoding"
    if encoding == "utf-7":
        by = "encoding"
    table = opened(tmp_path / "file", content, **{by: encoding})
    assert grid(table) == [["Name", "Qty"], [cell, "1"]]


@pytest.mark.parametrize("encoding", ["no-such-thing", "rot13", "hex", "base64"])
def test_an_unknown_encoding_is_named(tmp_path: Path, encoding: str) -> None:
    found = problem(tmp_path / "file", "Name\nü\n", encoding=encoding)
    assert found.message == f"Unknown encoding {encoding}."


@pytest.mark.parametrize("content", [b"Name,Qty\na\x00b,1\n", b"\x00\x00,1\n", b"a,\x00\n"])
def test_a_zero_in_a_text_is_no_encoding(tmp_path: Path, content: bytes) -> None:
    assert opened(tmp_path / "file", content).encoding == "utf-8"


@pytest.mark.parametrize("content", ["Name\nKöln", "Name,Qty\na,ü", "Name\nä"])
def test_a_last_character_counts(tmp_path: Path, content: str) -> None:
    rows = grid(opened(tmp_path / "file", content.encode("cp1252")))
    assert rows == grid(opened(tmp_path / "file", content))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('Name, Note\na, "x, y"\nb, "z"\n', [["a", "x, y"], ["b", "z"]]),
        ('Name;  Note\n"a";  "x; y"\nb;  z\n', [["a", "x; y"], ["b", "z"]]),
        ('Name, Note\na, "two\nlines"\n', [["a", "two\nlines"]]),
        ('Name, Note\na, "say ""yes"""\n', [["a", 'say "yes"']]),
        # Nothing is gained: these marks are a part of their text.
        ('Name,Note\na, "x\nb,y\n', [["a", ' "x'], ["b", "y"]]),
        ('Name,Note\na,"b, ""c"""\nd, e\n', [["a", 'b, "c"'], ["d", " e"]]),
    ],
)
def test_a_quotation_mark_may_stand_behind_spaces(
    tmp_path: Path, content: str, expected: list[list[Any]]
) -> None:
    assert grid(opened(tmp_path / "file", content))[1:] == expected


def test_a_quotation_mark_behind_spaces_is_closed_too(tmp_path: Path) -> None:
    content = "Name, Note\n" + 'a, "x, y"\n' * 200 + 'b, "z\nc, d\n'
    assert "in line 202 is not closed" in problem(tmp_path / "file", content).message


@pytest.mark.parametrize("end", ["\x1a", "\x1a\r\n", "\r\n\x1a"])
def test_a_mark_of_the_end_is_no_row(tmp_path: Path, end: str) -> None:
    assert grid(opened(tmp_path / "file", f"A,B\r\n1,2\r\n{end}")) == [["A", "B"], ["1", "2"]]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a;b;\n1;2;\n3;4;\n", [["a", "b"], ["1", "2"], ["3", "4"]]),
        ("a;b;;;\n1;2;;;\n3;4\n", [["a", "b"], ["1", "2"], ["3", "4"]]),
        ("a;;b;\n1;;2;\n", [["a", "B", "b"], ["1", None, "2"]]),
        ("a;b\n1;2;\n", [["a", "b"], ["1", "2"]]),
        ("a;b;\n" + "1;2;\n" * 2_000 + "3;4;5\n", [["a", "b", "C"], ["1", "2", None]]),
        ("a;b;c\n1;2;\n", [["a", "b", "c"], ["1", "2", None]]),
    ],
)
def test_a_delimiter_at_the_end_of_each_line_makes_no_column(
    tmp_path: Path, content: str, expected: list[list[Any]]
) -> None:
    assert grid(opened(tmp_path / "file", content))[: len(expected)] == expected


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00\ufeff"), max_size=8)
TABLES = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(TEXTS, min_size=width, max_size=width), min_size=1, max_size=5)
)


@given(
    rows=TABLES,
    delimiter=st.sampled_from(",;|\t"),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    blanks=st.integers(0, 3),
    stated=st.booleans(),
)
def test_a_table_that_was_written_reads_back_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[list[str]],
    delimiter: str,
    end: str,
    quoting: Any,
    encoding: str,
    blanks: int,
    stated: bool,
) -> None:
    names = [f"Column {place}" for place in range(len(rows[0]))]
    written = io.StringIO(newline="")
    written.write(f"sep={delimiter}{end}" if stated else "")
    written.write(end * blanks)
    writer = csv.writer(written, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writerows([names, *rows])
    path = tmp_path_factory.mktemp("table") / "file"
    options = {} if stated else {"delimiter": delimiter}
    table = opened(path, written.getvalue().encode(encoding), **options)
    assert table.headers == names
    # A row of one empty cell is written as a quoted one.
    expected = [[each if each.strip() else None for each in row] for row in rows]
    assert [*map(list, table.rows())] == expected


def test_an_apostrophe_before_a_formula_says_that_it_is_a_text(tmp_path: Path) -> None:
    content = "'=Key,Own,Size\n'-5,''=1,'tis\n'+49 30,'-',-3\n"
    assert grid(opened(tmp_path / "file", content)) == [
        ["=Key", "Own", "Size"],
        ["-5", "'=1", "'tis"],
        ["+49 30", "'-'", "-3"],
    ]


@pytest.mark.parametrize("cell", ["'-5", "'+49301", "'-1e5", "'+3.5", "'-12:30"])
def test_a_marked_text_is_no_number(tmp_path: Path, cell: str) -> None:
    table = opened(tmp_path / "file", f"a,b\n{cell},-5\n{cell},-6\n")
    columns = profiles(table.headers, table.rows(), Declared())
    assert [column.kind for column in columns] == [FieldKind.TEXT, FieldKind.NUMBER]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(b"a,b\n1,2\n", mtime=0), "is compressed"),
        (bz2.compress(b"a,b\n1,2\n"), "is compressed"),
        (lzma.compress(b"a,b\n1,2\n"), "is compressed"),
        (b"\x89PNG\r\n\x1a\n" + b"D" * 50, "is not text"),
        (b"\xff\xd8\xff\xe0,JFIF\n1,2\n", "is not text"),
        (b"%PDF-1.4\n1,2\n", "is not text"),
        (b"SQLite format 3\0,\n1,2\n", "is not text"),
    ],
)
@pytest.mark.parametrize("file_format", [TableFormat.CSV, TableFormat.TSV, TableFormat.JSON])
def test_bytes_that_are_no_text_are_not_read_as_one(
    tmp_path: Path, content: bytes, message: str, file_format: TableFormat
) -> None:
    assert message in problem(tmp_path / "file", content, format=file_format).message


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ('="007"', "007"),
        ('"=""007"""', "007"),
        ('="5"', "5"),
        ('"=""a """"b"""""""', 'a "b"'),
        ('=""', None),
        ("=A1", "=A1"),
        ('="a"&B1', '="a"&B1'),
    ],
)
def test_a_formula_of_a_text_is_the_text(tmp_path: Path, written: str, read: str | None) -> None:
    table = opened(tmp_path / "file", f"Code;Qty\n{written};1\nx;2\n", delimiter=";")
    assert grid(table) == [["Code", "Qty"], [read, "1"], ["x", "2"]]
    columns = profiles(table.headers, table.rows(), Conventions())
    assert columns[0].kind is FieldKind.TEXT


def test_a_text_that_looks_like_such_a_formula_comes_back_from_an_export(tmp_path: Path) -> None:
    written = csv_cell('="007"').replace('"', '""')
    table = opened(tmp_path / "file", f'Code\n"{written}"\n', delimiter=",")
    assert grid(table) == [["Code"], ['="007"']]


@pytest.mark.parametrize(
    ("content", "read"),
    [
        ("Betrag\n1,5\n2,25\n", [["Betrag"], ["1,5"], ["2,25"]]),
        ("Betrag\r\n-1.234,50 €\r\n\r\n12 €\r\n", [["Betrag"], ["-1.234,50 €"], ["12 €"]]),
        ("Name\nMüller, Hans\nMadonna\n", [["Name"], ["Müller, Hans"], ["Madonna"]]),
        ("Name\nMüller, Hans\nMeier, Eva\n", [["Name"], ["Müller, Hans"], ["Meier, Eva"]]),
        ("Note\nHello, you, there\nx\n", [["Note"], ["Hello, you, there"], ["x"]]),
        # Tables below a title, and of two columns.
        ("Report\n\nn, v\na, 1\nb, 2\n", [["n", "v"], ["a", " 1"], ["b", " 2"]]),
        ("Report\nn,v,w\na,1,2\nb,3,4\n", [["n", "v", "w"], ["a", "1", "2"], ["b", "3", "4"]]),
        ("Report\nn, v, w\na, 1, 2\n", [["n", "v", "w"], ["a", " 1", " 2"]]),
        ("a,b\n1,5\n2,5\n", [["a", "b"], ["1", "5"], ["2", "5"]]),
        ('Name\n"x, y"\n"z, w"\n', [["Name"], ["x, y"], ["z, w"]]),
    ],
)
def test_commas_in_a_single_column_divide_nothing(
    tmp_path: Path, content: str, read: list[list[str]]
) -> None:
    assert grid(opened(tmp_path / "file", content)) == read


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r'"a \"b\" c"', 'a "b" c'),
        (r'"a \"b\" c \"d\""', 'a "b" c "d"'),
        (r'"say \"x\", \"y\"; z"', 'say "x", "y"; z'),
        ('"line \\"one\\"\nline two"', 'line "one"\nline two'),
        (r'"{\"a\": 1, \"b\": \"c\"}"', '{"a": 1, "b": "c"}'),
        # No mark of this kind is in these.
        (r'"C:\dir"', r"C:\dir"),
        ('"C:\\"', "C:\\"),
        (r'"a ""b"" \c"', r'a "b" \c'),
        ('5\\" pipe', '5\\" pipe'),
    ],
)
def test_a_backslash_may_stand_before_a_quotation_mark(
    tmp_path: Path, delimiter: str, written: str, read: str
) -> None:
    content = f'n{delimiter}v\n{written}{delimiter}1\n"z"{delimiter}2\n'
    assert grid(opened(tmp_path / "file", content))[1:] == [[read, "1"], ["z", "2"]]


def test_a_backslash_at_the_end_is_written_twice_beside_such_marks(tmp_path: Path) -> None:
    content = 'n,v\n"a \\"b\\" c",1\n"C:\\\\",2\n'
    assert grid(opened(tmp_path / "file", content))[1:] == [['a "b" c', "1"], ["C:\\", "2"]]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("chosen", [None, "utf-8"])
def test_stray_bytes_spoil_no_other_text(tmp_path: Path, encoding: str, chosen: str | None) -> None:
    content = "n,v\nMüller,1\nŁódź “x”,2\n".encode(encoding) + b"K\xf6hler \x80,3\n"
    table = opened(tmp_path / "file", content, encoding=chosen)
    assert grid(table)[1:] == [["Müller", "1"], ["Łódź “x”", "2"], ["Köhler €", "3"]]
    assert "not UTF-8" in (table.note or "")


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "Müller"),
        ("gbk", "北京大学的学生"),
        ("shift_jis", "東京タワー"),
        ("big5", "台北市大安區"),
        ("euc_kr", "서울특별시"),
        ("cp1251", "Москва"),
    ],
)
def test_other_encodings_are_not_taken_for_utf_8_with_stray_bytes(
    tmp_path: Path, encoding: str, text: str
) -> None:
    table = opened(tmp_path / "file", f"n,v\n{text},1\n".encode(encoding))
    assert grid(table)[1:] == [[text, "1"]]
    assert table.note is None
