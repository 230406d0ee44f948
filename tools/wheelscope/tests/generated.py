"""Versions as hypothesis makes them, in every spelling that the specification takes."""

from hypothesis import strategies as st

numbers = st.integers(0, 30).map(str) | st.sampled_from(["00", "010", "2026"])
separators = st.sampled_from(["", ".", "-", "_"])
letters = st.sampled_from(["a", "b", "rc", "c", "alpha", "beta", "pre", "preview", "A", "RC"])


@st.composite
def versions(draw: st.DrawFn, local: bool = True) -> str:
    text = draw(st.sampled_from(["", "v", "V", "1!", "0!"]))
    text += ".".join(draw(st.lists(numbers, min_size=1, max_size=4)))
    if draw(st.booleans()):
        text += draw(separators) + draw(letters) + draw(separators) + draw(numbers | st.just(""))
    if draw(st.booleans()):
        post = draw(st.sampled_from(["post", "rev", "r", "POST"]))
        text += draw(
            st.just("-" + draw(numbers)) | st.just(draw(separators) + post + draw(numbers))
        )
    if draw(st.booleans()):
        text += draw(separators) + "dev" + draw(numbers | st.just(""))
    if local and draw(st.integers(0, 3)) == 0:
        text += "+" + draw(st.sampled_from(["cu130", "1", "cpu.2", "ubuntu-1", "A_b", "01"]))
    return text
