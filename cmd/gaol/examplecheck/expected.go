package examplecheck

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"gaol/internal/strictjson"
)

// expectations compares outputs with the files beside the examples, or writes these.
func (o Options) expectations(results []*Result) error {
	files := map[string]*expectedFile{}
	var order []*expectedFile
	for _, r := range results {
		if r.Files == nil { // a mistake in a page, or a file that is too large
			continue
		}
		name := r.ExpectedFile()
		f := files[name]
		if f == nil {
			f = readExpected(r.Example)
			files[name] = f
			order = append(order, f)
		}
		f.results = append(f.results, r)
	}
	for _, f := range order {
		if !o.Update {
			f.compare()
		} else if err := f.update(); err != nil {
			return err
		}
	}
	return nil
}

// expectedFile is the file of a code file, whose only member is "", or of a page.
type expectedFile struct {
	outputs map[string]json.RawMessage // by name of the example
	text    []byte
	err     error
	results []*Result
}

// pageOutputs is the member of a page's file with the outputs.
const pageOutputs = "examples"

func readExpected(e *Example) *expectedFile {
	f := &expectedFile{outputs: map[string]json.RawMessage{}}
	f.text, f.err = e.ReadExpected()
	switch {
	case errors.Is(f.err, fs.ErrNotExist):
		f.err = nil
	case f.err != nil:
	case e.Name == "":
		if f.err = json.Unmarshal(f.text, &json.RawMessage{}); f.err == nil {
			f.outputs[""] = f.text
		}
	default:
		var page map[string]map[string]json.RawMessage
		if f.err = json.Unmarshal(f.text, &page); f.err == nil && page[pageOutputs] != nil {
			f.outputs = page[pageOutputs]
		}
	}
	return f
}

// compare fails examples whose output is not the expected one.
func (f *expectedFile) compare() {
	for _, r := range f.results {
		name := r.ExpectedFile()
		if r.Output == nil || r.Status == Failed {
			continue
		}
		if f.err != nil {
			r.fail(Message{File: name, Line: 1, Text: "not readable as expected output: " + f.err.Error()})
			continue
		}
		want, ok := f.outputs[r.Name]
		if !ok {
			continue
		}
		wanted, got := canonical(want), canonical(r.Output)
		if bytes.Equal(wanted, got) {
			continue
		}
		_, r.Diff, _ = strings.Cut(string(diff.Diff(name, wanted, "output", got)), "\n") // without a title
		r.fail(Message{File: r.File, Line: r.Line, Text: "the output is not that of " + name + "; gaol snippet check --update accepts it"})
	}
}

// update writes the outputs of examples that pass. It keeps the outputs of other examples, and
// drops the outputs of deleted ones.
func (f *expectedFile) update() error {
	outputs := map[string]json.RawMessage{}
	for _, r := range f.results {
		name := r.Name
		if old, ok := f.outputs[name]; ok {
			outputs[name] = old
		}
		if r.Output != nil && r.Status != Failed {
			outputs[name] = canonical(r.Output)
		}
	}
	e := f.results[0].Example
	text := canonical(map[string]any{pageOutputs: outputs})
	if e.Name == "" {
		text = outputs[""]
	}
	if len(outputs) == 0 || bytes.Equal(text, f.text) {
		return nil
	}
	if err := e.WriteExpected(text); err != nil {
		return fmt.Errorf("write %s: %w", e.ExpectedFile(), err)
	}
	return nil
}

// canonical returns JSON with sorted members, indented, numbers as they are
// written, and an output without its duration. v is valid: the text of a file was checked, and a Runner returns no other.
func canonical(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var value any
	if dec.Decode(&value) != nil {
		return nil
	}
	if object, ok := value.(map[string]any); ok {
		delete(object, "durationMs")
	}
	text, _ = strictjson.Encode(value, "  ") // it was JSON
	return text
}

// expectedEnding is the suffix of files with the expected output of an example.
const expectedEnding = ".expected.json"

// maxExpected is the most bytes that such a file may have.
const maxExpected = 16 << 20

// ExpectedFile returns the name of the file beside e with its expected output. All examples of a
// page have the same.
func (e *Example) ExpectedFile() string { return e.File + expectedEnding }

// ReadExpected reads ExpectedFile. The error is fs.ErrNotExist without one.
func (e *Example) ReadExpected() ([]byte, error) {
	return readRegular(e.folder.root, e.path+expectedEnding, maxExpected)
}

// WriteExpected replaces ExpectedFile as a whole. It follows no symbolic link.
func (e *Example) WriteExpected(b []byte) error {
	root, temporary := e.folder.root, path.Join(path.Dir(e.path), "."+rand.Text()+".tmp")
	err := root.WriteFile(temporary, b, 0o644)
	if err == nil {
		err = root.Rename(temporary, e.path+expectedEnding)
	}
	if err != nil {
		_ = root.Remove(temporary)
	}
	return err
}
