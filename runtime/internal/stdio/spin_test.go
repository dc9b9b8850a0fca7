package stdio

import (
	"io"
	"os"
	"testing"
)

// Expected data is read as soon as it arrives. If none arrives, the reader polls only briefly.
func TestPipeReadExpected(t *testing.T) {
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	r := NewReader(from)
	read := func(want string) {
		t.Helper()
		buf := make([]byte, 16)
		if n, err := r.Read(buf); err != nil || string(buf[:n]) != want {
			t.Errorf("read %q, %v, want %q", buf[:n], err, want)
		}
	}
	write := func(text string) {
		if _, err := io.WriteString(to, text); err != nil {
			t.Error(err)
		}
	}
	r.expecting = true
	write("soon")
	read("soon")
	if r.expecting || r.pause != 0 {
		t.Errorf("expecting %v, pause %d after immediate data", r.expecting, r.pause)
	}

	if n := r.spin(make([]byte, 16)); n != 0 || r.pause != spinPause {
		t.Errorf("without data: %d bytes, pause %d", n, r.pause)
	}
	for range spinPause {
		if r.Expect(); r.expecting {
			t.Fatal("polls again too early")
		}
	}
	if r.Expect(); !r.expecting {
		t.Error("does not poll again")
	}

	r.expecting = true
	to.Close()
	if n, err := r.Read(make([]byte, 16)); n != 0 || err != io.EOF {
		t.Errorf("at the end: %d, %v", n, err)
	}
}

// The reader does not wait for expected data after the end of a run.
func TestPipeReadExpectedAtTheEnd(t *testing.T) {
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	defer to.Close() // as if another run held it
	r := NewReader(from)
	r.expecting = true
	r.End()
	if n, err := r.Read(make([]byte, 16)); n != 0 || err != io.EOF {
		t.Errorf("%d, %v", n, err)
	}
}
