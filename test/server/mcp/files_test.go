package mcp

import (
	"encoding/base64"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type readResult struct {
	Path, Content, Encoding, URI string
	Size, NextOffset             int64
}

type listResult struct {
	Path  string
	Files []struct {
		Path, Type string
		Size       int64
	}
	Truncated bool
}

func testFiles(t *testing.T, s *session) {
	id := s.create(args{"files": args{"a.txt": "ä", "/tmp/b": "b"}})
	var list listResult
	s.ok("write_file", args{"sandboxId": id, "path": "dir/ü %.bin", "content": base64.StdEncoding.EncodeToString([]byte{0, 255}), "encoding": "base64"}, nil)
	s.ok("list_files", args{"sandboxId": id, "recursive": true}, &list)
	paths := []string{}
	for _, f := range list.Files {
		paths = append(paths, f.Type+" "+f.Path)
	}
	if diff := cmp.Diff([]string{"file a.txt", "folder dir", "file dir/ü %.bin"}, paths); diff != "" {
		t.Error(diff)
	}
	var read readResult
	s.ok("read_file", args{"sandboxId": id, "path": "/workspace/dir/ü %.bin"}, &read)
	if read.Encoding != "base64" || read.Content != "AP8=" || read.Size != 2 {
		t.Errorf("%+v", read)
	}
	resource, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: read.URI})
	if err != nil || string(resource.Contents[0].Blob) != "\x00\xff" {
		t.Errorf("%v: %v", read.URI, err)
	}
	testPages(t, s, id)
	testFileErrors(t, s, id)
	s.ok("close_sandbox", args{"sandboxId": id}, nil)
	s.fails("read_file", args{"sandboxId": id, "path": "a.txt"}, "no sandbox", "create_sandbox")
}

// testPages reads a file in parts, whose ends are inside of characters.
func testPages(t *testing.T, s *session, id string) {
	s.ok("run_command", args{"sandboxId": id, "command": "node -e \"fs.writeFileSync('long', 'x' + 'ä€'.repeat(20_000))\""}, nil)
	all, offset := "", int64(0)
	for pages := 0; ; pages++ {
		var read readResult
		s.ok("read_file", args{"sandboxId": id, "path": "long", "offset": offset}, &read)
		if read.Encoding != "utf8" || pages > 5 {
			t.Fatalf("page %d: %s", pages, read.Encoding)
		}
		all, offset = all+read.Content, read.NextOffset
		if offset == 0 {
			break
		}
	}
	if len(all) != 100_001 {
		t.Errorf("%d bytes", len(all))
	}
}

func testFileErrors(t *testing.T, s *session, id string) {
	s.ok("run_command", args{"sandboxId": id, "command": "mkfifo fifo; ln -s /proc/self/mem mem; ln -s ../../../etc/shadow shadow; truncate -s 20M big"}, nil)
	for path, text := range map[string]string{
		"missing": "no such file or directory. list_files", "dir": "is a directory. Use list_files", "a.txt/x": "not a directory", "fifo": "neither a file nor a folder", "a\x00b": "path",
	} {
		s.fails("read_file", args{"sandboxId": id, "path": path}, text)
	}
	s.fails("read_file", args{"sandboxId": id, "path": "mem"})
	s.fails("read_file", args{"sandboxId": id, "path": "shadow"}) // the guest may not read the image's, either
	s.fails("list_files", args{"sandboxId": id, "path": "a.txt"}, "not a directory")
	s.fails("write_file", args{"sandboxId": id, "path": "/usr/x", "content": ""})
	s.fails("write_file", args{"sandboxId": id, "path": "x", "content": "%", "encoding": "base64"}, "base64")
	for _, uri := range []string{"gaol://sandbox/" + id + "/workspace/missing", "gaol://sandbox/sb-none/x", "file:///etc/passwd"} {
		_, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if wire, ok := errors.AsType[*jsonrpc.Error](err); !ok || wire.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("%s: %v", uri, err)
		}
	}
	if _, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "gaol://sandbox/" + id + "/workspace/big"}); err == nil {
		t.Error("a resource of 20 MiB was read")
	}
}

// testArguments passes wrong arguments: tool errors, which the model sees.
func testArguments(t *testing.T, s *session) {
	for _, c := range []struct {
		tool string
		args args
		text string
	}{
		{"run_code", args{}, "code"},
		{"run_code", args{"code": 1}, "code"},
		{"run_code", args{"code": "1", "language": "py"}, "one of"},
		{"run_code", args{"code": "1", "sandbox": "x"}, "sandbox"},
		{"run_code", args{"code": "1", "timeoutMs": -1}, ">= 0"},
		{"run_code", args{"code": "1", "sandboxId": "sb-none"}, "create_sandbox"},
		{"run_code", args{"code": "1", "contextId": "ctx-none"}, "no context"},
		{"run_command", args{"command": ""}, "length >= 1"},
		{"create_sandbox", args{"permissions": args{"network": args{"default": "allow", "rules": []any{args{"mode": "maybe"}}}}}, "maybe"},
		{"create_sandbox", args{"permissions": args{"nope": "allow"}}, "nope"},
		{"create_sandbox", args{"image": "../../etc"}, ""},
		{"create_sandbox", args{"limits": args{"memoryBytes": -1}}, ">= 0"},
		{"close_sandbox", args{"sandboxId": "sb-none"}, "no sandbox"},
		{"write_file", args{"sandboxId": "sb-none", "path": "x", "content": ""}, "no sandbox"},
		{"sandbox_exists", args{"containerId": "none", "path": "/"}, "sandbox_init"},
		{"sandbox_exists", args{"containerId": "none"}, "path"},
	} {
		s.fails(c.tool, c.args, c.text)
	}
	if _, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "nope"}); err == nil {
		t.Error("an unknown tool was called")
	}
}
