from greet import greet


def test_greet():
    assert greet("x") == "Hello x"


def test_empty():
    assert greet("") == "Hello "
