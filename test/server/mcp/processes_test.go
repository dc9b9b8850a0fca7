package mcp

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"maps"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type processResult struct {
	ProcessID, Output, Cursor, Signal, Cause string
	More, Lost, Running                      bool
	ExitCode                                 *int
}

// testProcess starts a process that survives the call, talks to it, and stops it.
func testProcess(t *testing.T, s *session) {
	id := s.create(nil)
	var p processResult
	s.ok("start_process", args{"sandboxId": id, "command": "echo ready; while read -r line; do echo got $line; done", "waitMs": 20_000}, &p)
	if !p.Running || p.Output != "ready\n" || p.ExitCode != nil {
		t.Fatalf("%+v", p)
	}
	in := args{"sandboxId": id, "processId": p.ProcessID}
	s.ok("write_process", with(in, args{"text": "one\ntwo\n"}), nil)
	var text strings.Builder
	for !strings.Contains(text.String(), "two") {
		s.ok("read_process", with(in, args{"cursor": p.Cursor, "waitMs": 20_000}), &p)
		text.WriteString(p.Output)
	}
	if text.String() != "got one\ngot two\n" {
		t.Errorf("output %q", text.String())
	}
	s.ok("read_process", in, &p)
	if p.Output != "ready\ngot one\ngot two\n" || !p.Running {
		t.Errorf("from the start: %+v", p)
	}
	s.ok("stop_process", with(in, args{"cursor": p.Cursor}), &p)
	if p.Running || p.Output != "" || p.Signal != "SIGTERM" {
		t.Errorf("after the stop: %+v", p)
	}
	s.fails("read_process", in, "no process", "start one with start_process")
	testProcessEnds(t, s, id)
	testLongProcess(t, s, id)
}

// testProcessEnds starts a process that exits.
func testProcessEnds(t *testing.T, s *session, id string) {
	var p processResult
	s.ok("start_process", args{"sandboxId": id, "command": "node", "args": []string{"-e", "setTimeout(() => process.exit(3), 10)"}, "waitMs": 30_000}, &p)
	if p.Running || p.ExitCode == nil || *p.ExitCode != 3 {
		t.Errorf("%+v", p)
	}
	in := args{"sandboxId": id, "processId": p.ProcessID}
	s.fails("write_process", with(in, args{"text": "x"}), "has ended")
	s.fails("read_process", with(in, args{"cursor": "x"}), "cursor")
	s.fails("read_process", with(in, args{"cursor": "99999"}), "event 99999")
	s.fails("stop_process", with(in, args{"signal": "SIGNOTHING"}), "SIGNOTHING")
	s.ok("stop_process", in, &p)
}

// testLongProcess reads more output than a result has.
func testLongProcess(t *testing.T, s *session, id string) {
	var p processResult
	s.ok("start_process", args{"sandboxId": id, "command": "seq 20000; cat", "waitMs": 20_000}, &p)
	in := args{"sandboxId": id, "processId": p.ProcessID}
	var text strings.Builder
	for text.WriteString(p.Output); !strings.HasSuffix(text.String(), "\n20000\n"); text.WriteString(p.Output) {
		s.ok("read_process", with(in, args{"cursor": p.Cursor, "waitMs": 20_000}), &p)
		if len(p.Output) > 40_000 {
			t.Fatalf("%d bytes", len(p.Output))
		}
	}
	if n := strings.Count(text.String(), "\n"); n != 20_000 {
		t.Errorf("%d lines", n)
	}
	s.ok("write_process", with(in, args{"close": true}), nil)
	s.ok("stop_process", in, &p)
	if !p.More {
		t.Errorf("%+v", p)
	}
}

// testEdit edits a file.
func testEdit(t *testing.T, s *session) {
	id := s.create(args{"files": args{"a.txt": "one two\ntwo\n"}})
	in := args{"sandboxId": id, "path": "a.txt"}
	s.ok("edit_file", with(in, args{"oldText": "one two", "newText": "1"}), nil)
	s.fails("edit_file", with(in, args{"oldText": "three", "newText": ""}), "does not contain")
	s.ok("write_file", with(in, args{"content": "b a b"}), nil)
	s.fails("edit_file", with(in, args{"oldText": "b", "newText": "c"}), "2 times", "replaceAll")
	s.ok("edit_file", with(in, args{"oldText": "b", "newText": "c", "replaceAll": true}), nil)
	var read readResult
	s.ok("read_file", in, &read)
	if read.Content != "c a c" {
		t.Errorf("%q", read.Content)
	}
	s.ok("write_file", with(in, args{"content": strings.Repeat("x", 1<<10)}), nil)
	s.fails("edit_file", with(in, args{"oldText": "x", "newText": strings.Repeat("y", 20<<10), "replaceAll": true}), "16 MiB")
	s.fails("edit_file", args{"sandboxId": id, "path": "/etc/passwd", "oldText": "root", "newText": ""})
}

// testImage reads an image, and a file that is an image by name only.
func testImage(t *testing.T, s *session) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	id := s.create(nil)
	in := args{"sandboxId": id, "path": "plot"}
	s.ok("write_file", with(in, args{"content": base64.StdEncoding.EncodeToString(b.Bytes()), "encoding": "base64"}), nil)
	var read readResult
	r := s.ok("read_file", in, &read)
	picture, ok := r.Content[0].(*mcp.ImageContent)
	if !ok || picture.MIMEType != "image/png" || !bytes.Equal(picture.Data, b.Bytes()) || read.Encoding != "image" || read.Content != "" {
		t.Errorf("%+v, %T", read, r.Content[0])
	}
	s.ok("write_file", args{"sandboxId": id, "path": "false.png", "content": "AP8=", "encoding": "base64"}, nil)
	s.ok("read_file", args{"sandboxId": id, "path": "false.png"}, &read)
	if read.Encoding != "base64" {
		t.Errorf("%+v", read)
	}
}

// with returns arguments with more of them.
func with(a, more args) args {
	all := maps.Clone(a)
	maps.Copy(all, more)
	return all
}
