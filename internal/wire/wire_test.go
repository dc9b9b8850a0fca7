package wire

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
)

// golden is a frame of testdata/frames.json, which wire.test.mjs reads too.
type golden struct {
	Name, Kind, Hex      string
	JSON, Text           string
	Level                Level
	Call, Function, Cell uint32
	Failed               bool
}

func goldenFrames(t testing.TB) []golden {
	text, err := os.ReadFile("testdata/frames.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []golden
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

func (g golden) bytes(t testing.TB) []byte {
	b, err := hex.DecodeString(g.Hex)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// anything accepts every kind.
func anything(Kind) int64 { return 1 << 20 }

func TestGolden(t *testing.T) {
	kinds := map[string]Kind{"value": KindValue, "log": KindLog, "call": KindCall, "failure": KindFailure, "done": KindDone, "answer": KindAnswer, "cell": KindCell, "interrupt": KindInterrupt, "no value": KindNoValue, "output": KindOutput}
	seen := map[Kind]bool{}
	for _, g := range goldenFrames(t) {
		frame := g.bytes(t)
		r := NewReader(bytes.NewReader(frame), anything)
		kind, body, err := r.Next()
		if err != nil || kind != kinds[g.Kind] {
			t.Fatalf("%s: kind %d, %v", g.Name, kind, err)
		}
		if _, _, err := r.Next(); err != io.EOF {
			t.Errorf("%s: after it %v, want io.EOF", g.Name, err)
		}
		if got := Append(nil, kind, body); !bytes.Equal(got, frame) {
			t.Errorf("%s: written again it is %x, want %x", g.Name, got, frame)
		}
		g.check(t, kind, body, frame)
		seen[kind] = true
	}
	if len(seen) != len(kinds) {
		t.Errorf("only the kinds %v have frames", seen)
	}
}

func (g golden) check(t *testing.T, kind Kind, body, frame []byte) {
	var got golden
	var err error
	switch kind {
	case KindValue:
		var v json.RawMessage
		v, err = ParseValue(body)
		got.JSON = string(v)
	case KindLog:
		got.Level, got.Text, err = ParseLog(body)
	case KindCall:
		var c Call
		c, err = ParseCall(body)
		got.Call, got.Function, got.JSON = c.ID, c.Function, string(c.Args)
	case KindFailure:
		var f Failure
		if f, err = ParseFailure(body); err == nil {
			b, _ := json.Marshal(f)
			got.JSON = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(b))
		}
	case KindOutput:
		var s Stream
		var b []byte
		s, b, err = ParseOutput(body)
		got.Level, got.Text = Level(s), string(b)
	case KindNoValue:
		got.Text = ParseNoValue(body)
	case KindDone:
		got.Cell, err = ParseDone(body)
	case KindAnswer:
		if b := AppendAnswer(nil, g.Call, g.Failed, []byte(g.JSON)); !bytes.Equal(b, frame) {
			t.Errorf("%s: %x, want %x", g.Name, b, frame)
		}
		return
	case KindCell:
		if b := AppendCell(nil, g.Cell, []byte(g.Text)); !bytes.Equal(b, frame) {
			t.Errorf("%s: %x, want %x", g.Name, b, frame)
		}
		return
	case KindInterrupt:
		if b := AppendInterrupt(nil, g.Cell); !bytes.Equal(b, frame) {
			t.Errorf("%s: %x, want %x", g.Name, b, frame)
		}
		return
	}
	got.Name, got.Kind, got.Hex = g.Name, g.Kind, g.Hex
	if err != nil || got != g {
		t.Errorf("%s: %+v, %v", g.Name, got, err)
	}
}

func TestReaderRefuses(t *testing.T) {
	const most = 8
	limit := func(k Kind) int64 {
		if k == KindValue {
			return most
		}
		return 0
	}
	value := func(text string) []byte { return Append(nil, KindValue, []byte(text)) }
	for _, tc := range []struct {
		name string
		in   []byte
		want error
	}{
		{"nothing", nil, io.EOF},
		{"as long as allowed", value(strings.Repeat("1", most)), nil},
		{"empty", value(""), nil}, // no Parse function accepts it
		{"a cut head", value("1")[:3], io.ErrUnexpectedEOF},
		{"a cut body", value("123")[:6], io.ErrUnexpectedEOF},
		{"too long", value(strings.Repeat("1", most+1)), ErrFrame},
		{"4 GiB", []byte{0xff, 0xff, 0xff, 0xff, byte(KindValue)}, ErrFrame},
		{"no kind", []byte{0, 0, 0, 0, byte(KindValue)}, ErrFrame},
		{"a kind that is the host's", Append(nil, KindAnswer, []byte("123456")), ErrFrame},
		{"a kind that does not exist", Append(nil, 99), ErrFrame},
	} {
		_, _, err := NewReader(bytes.NewReader(tc.in), limit).Next()
		if !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		}
	}
}

// The length of a body is only the guest's claim: little is allocated for it.
func TestReaderAllocatesReceivedBytes(t *testing.T) {
	head := []byte{0x3f, 0xff, 0xff, 0xff, byte(KindValue)}
	r := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := NewReader(bytes.NewReader(head), func(Kind) int64 { return 1 << 31 }).Next(); err != io.ErrUnexpectedEOF {
				b.Fatal(err)
			}
		}
	})
	if most := int64(256 << 10); r.AllocedBytesPerOp() > most {
		t.Errorf("%d bytes for a frame that says it has 1 GiB, want %d at most", r.AllocedBytesPerOp(), most)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, err := range map[string]error{
		"a value of two":              second(ParseValue([]byte("1 2"))),
		"a value of nothing":          second(ParseValue(nil)),
		"NaN":                         second(ParseValue([]byte("NaN"))),
		"a value that is no UTF-8":    second(ParseValue([]byte("\"\xff\""))),
		"a short call":                second(ParseCall([]byte("1234567"))),
		"a call with an object":       second(ParseCall([]byte("12345678{}"))),
		"a call with no end":          second(ParseCall([]byte("12345678[1"))),
		"a call with no UTF-8":        second(ParseCall([]byte("12345678[\"\xff\"]"))),
		"a failure with more":         second(ParseFailure([]byte(`{"name":"","extra":1}`))),
		"a failure that is an array":  second(ParseFailure([]byte(`[]`))),
		"a failure named by a number": second(ParseFailure([]byte(`{"name":1}`))),
		"a failure of many causes":    second(ParseFailure([]byte(strings.Repeat(`{"cause":`, 70) + `{}` + strings.Repeat(`}`, 70)))),
		"a failure's cause with more": second(ParseFailure([]byte(`{"cause":{"extra":1}}`))),
		"a failure of many errors":    second(ParseFailure([]byte(`{"errors":[` + strings.Repeat(`{},`, 70) + `{}]}`))),
		"a failure with no error":     second(ParseFailure([]byte(`{"errors":[null]}`))),
		"a failure of many parts":     second(ParseFailure([]byte(`{"properties":{` + strings.Join(numbered(65), ",") + `}}`))),
		"properties that are none":    second(ParseFailure([]byte(`{"properties":[1]}`))),
		"a code that is none":         second(ParseFailure([]byte(`{"code":1}`))),
		"two failures":                second(ParseFailure([]byte(`{}{}`))),
		"a short done":                second(ParseDone([]byte("123"))),
		"a long done":                 second(ParseDone([]byte("12345"))),
	} {
		if !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, body := range []string{"", "\x00x", "\x06x"} {
		if _, _, err := ParseLog([]byte(body)); !errors.Is(err, ErrFrame) {
			t.Errorf("log %q: %v", body, err)
		}
	}
	if _, text, err := ParseLog([]byte("\x02a\xffb")); text != "a\uFFFDb" || err != nil {
		t.Errorf("a log that is not UTF-8: %q, %v", text, err)
	}
}

// ParseCall accepts whatever JSON.stringify writes.
func TestParseCallAccepts(t *testing.T) {
	const deepest = 10_000
	for _, args := range []string{
		"[]", "[ ]", `["\ud800"]`, `["\u0000"]`, `[{"":1,"a":{"":2}}]`, `[{"__proto__":1}]`, "[1e400,-0]", "[\"\u2028\"]",
		strings.Repeat("[", deepest) + strings.Repeat("]", deepest),
	} {
		if c, err := ParseCall([]byte("\x00\x00\x00\x01\xff\xff\xff\xff" + args)); err != nil || string(c.Args) != args || c.ID != 1 || c.Function != 1<<32-1 {
			t.Errorf("%.50s: %+v, %v", args, c, err)
		}
	}
}

// Duplicate names are an error that identifies the call.
func TestParseCallDuplicateName(t *testing.T) {
	for _, args := range []string{`[{"a":1,"a":1}]`, `[1,[{"b":{"a":1,"\u0061":2}}]]`, `[{"\ud800":1,"\udfff":1}]`, `[{"":1,"":1}]`} {
		c, err := ParseCall([]byte("\x00\x00\x00\x01\x00\x00\x00\x02" + args))
		if err != ErrDuplicateName || c.ID != 1 || c.Function != 2 || c.Args != nil {
			t.Errorf("%s: %+v, %v", args, c, err)
		}
	}
}

// numbered returns n members of an object.
func numbered(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf(`"%d":1`, i))
	}
	return list
}

func second[T any](_ T, err error) error { return err }

// For any input, the result is bounded, of a kind that a guest may send, and valid for its
// kind.
func FuzzReader(f *testing.F) {
	for _, g := range goldenFrames(f) {
		f.Add(g.bytes(f))
	}
	f.Add([]byte{0, 0, 0, 200, 1, 2, 3})
	f.Fuzz(func(t *testing.T, in []byte) {
		const most = 64
		r := NewReader(bytes.NewReader(in), func(k Kind) int64 {
			if k <= KindDone {
				return most
			}
			return 0
		})
		for {
			kind, body, err := r.Next()
			if err != nil {
				return
			}
			if kind > KindDone || len(body) > most {
				t.Fatalf("let %d bytes of kind %d through", len(body), kind)
			}
			checkParsed(t, kind, body)
		}
	})
}

// A body is complete for any length, and its capacity is its length.
func TestReaderBodyCapacity(t *testing.T) {
	for _, n := range []int{0, 1, 100, 16<<10 - 1, 16 << 10, 16<<10 + 1, 100_000, 3 << 20} {
		in := bytes.Repeat([]byte("0123456789abcdef"), n/16+1)[:n]
		r := NewReader(io.MultiReader(bytes.NewReader(Append(nil, KindValue, in)), iotest.HalfReader(bytes.NewReader(Append(nil, KindLog, in)))), func(Kind) int64 { return 4 << 20 })
		for _, want := range []Kind{KindValue, KindLog} {
			kind, body, err := r.Next()
			if err != nil || kind != want || !bytes.Equal(body, in) || cap(body) > n+n/4+64 {
				t.Errorf("%d bytes: %d of kind %d, room for %d, %v", n, len(body), kind, cap(body), err)
			}
		}
	}
}

func checkParsed(t *testing.T, kind Kind, body []byte) {
	switch kind {
	case KindValue:
		if v, err := ParseValue(body); err == nil && !json.Valid(v) {
			t.Fatalf("let the value %q through", v)
		}
	case KindCall:
		if c, err := ParseCall(body); err == nil && json.Unmarshal(c.Args, &[]json.RawMessage{}) != nil {
			t.Fatalf("let the arguments %q through", c.Args)
		}
	case KindLog:
		if _, text, err := ParseLog(body); err == nil && strings.ToValidUTF8(text, "") != text {
			t.Fatalf("let the line %q through", text)
		}
	case KindFailure:
		_, _ = ParseFailure(body)
	case KindDone:
		_, _ = ParseDone(body)
	}
}
