package snippet

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBlocks(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []string // language and content, with a + at the end if it is not closed
	}{
		{"none", "a\n``b``\n", nil},
		{"one", "a\n```js\nb\nc\n```\nd", []string{"js: b\nc\n"}},
		{"at the ends", "~~~\na\n~~~", []string{": a\n"}},
		{"empty", "```\n```", []string{": "}},
		{"not closed", "```js\na", []string{"js: a"}},
		{"not even begun", "a\n```js", []string{"js: "}},
		{"closed by more", "```\na\n`````\nb", []string{": a\n"}},
		{"not closed by less", "````\n```\na\n```\n````", []string{": ```\na\n```\n"}},
		{"not closed by others", "```\n~~~\n```", []string{": ~~~\n"}},
		{"not closed with words", "```\n``` a\n```", []string{": ``` a\n"}},
		{"indented", "   ```js\n   a\n   ```", []string{"js:    a\n"}},
		{"in an item of a list", "10. b\n    ```js\n    a\n    ```", []string{"js:     a\n"}},
		{"in an item's first line", "1. - ```js\n     a\n     ```\n", []string{"js:      a\n"}},
		{"not closed by another item", "- ```js\n- ```\n  ```\n", []string{"js: - ```\n"}},
		{"not closed further in", "```js\n    ```\n   ```\n", []string{"js:     ```\n"}},
		{"quoted", "> > ```js\n> > a\n> > ```\nb", []string{"js: > > a\n"}},
		{"not closed by a quotation", "```js\n> ```\n```\n", []string{"js: > ```\n"}},
		{"lines of a comment", "* ```js\n * ```\n", nil},
		{"no items of a list", "-```\n1.```\n1 ```\n. ```\n1234567890. ```\n--- ```", nil},
		{"closed before a tag", "<b>\n```js\na\n```</b>\n", []string{"js: a\n"}},
		{"not begun before a tag", "<b>```js\na\n```</b>\n", nil},
		{"inline code", "```a``` b", nil},
		{"other ends of lines", "```js\r\na\r\n```\r\n", []string{"js: a\r\n"}},
		{"two", "```js\na\n```\n~~~ts\nb\n~~~", []string{"js: a\n", "ts: b\n"}},
	} {
		var got []string
		for _, b := range blocksOf(tc.text, findFences(tc.text)) {
			got = append(got, b.language+": "+tc.text[b.content.start:b.content.end])
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", tc.name, diff)
		}
	}
}

func TestLanguageOf(t *testing.T) {
	for info, want := range map[string]string{
		"": "", "js": "js", "JavaScript": "javascript", "ts title=\"a\"": "ts", "{.js}": "js", "{tsx}": "tsx", "js:main.js": "js",
		"js,editable": "js", "c++": "c++", "c#": "c#", "ñ": "", "type script": "type", ".mjs": "mjs",
	} {
		if got := languageOf(info); got != want {
			t.Errorf("%q is %q, want %q", info, got, want)
		}
	}
}

func TestSingleLineBlock(t *testing.T) {
	for text, want := range map[string]string{
		"```js a ```": " a ", "\n ```a```\r\n": "a", "```JS `a````": " `a`", "```js```": "js", "```foo 1```": "foo 1",
		"```a``` b": "", "b ```a```": "", "```a\nb```": "", "```a``` + ```b```": "", "```` a ````": "", "``````": "", "```": "", "\r```a```": "",
	} {
		b, ok := singleLineBlock(text)
		if got := text[b.content.start:b.content.end]; got != want || ok != (want != "") {
			t.Errorf("%q has %q, %v, want %q", text, got, ok, want)
		}
	}
}

// Of text that is not code, only the line ends are left.
func TestExtract(t *testing.T) {
	const text = "Some\ntext\r\n  ```js\n  a\n    b\n c\n  ```\nand\n```\nd"
	got := extract(newDraft(text), blocksOf(text, findFences(text)))
	if diff := cmp.Diff("\n\r\n\na\n  b\nc\n;\n\n\nd", got.text); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for _, word := range []string{"a\n", "b\n", "c\n", "d"} {
		at := strings.Index(got.text, word)
		if before, known := got.origin(at); !known || !strings.HasPrefix(text[before:], word) {
			t.Errorf("%q came from %d, %v", word, before, known)
		}
	}
}
