package client

import (
	"encoding/json"
	"io/fs"
	"testing"
)

func TestFileInfo(t *testing.T) {
	for _, tc := range []struct {
		text, name, path, target string
		mode                     fs.FileMode
		ok                       bool
	}{
		{`{"path":"/a/b","type":"file","size":3,"mode":"0644","modified":"2026-01-02T03:04:05Z"}`, "b", "/a/b", "", 0o644, true},
		{`{"path":"/","type":"folder","size":0,"mode":"0755","modified":"0001-01-01T00:00:00Z"}`, "/", "/", "", fs.ModeDir | 0o755, true},
		{`{"path":"/\ufffd","pathBytes":"L/8=","type":"link","mode":"0777","target":"x"}`, "\xff", "/\xff", "x", fs.ModeSymlink | 0o777, true},
		{`{"path":"/s","type":"socket","mode":"0000"}`, "s", "/s", "", fs.ModeSocket, true},
		{`{"path":"/x","type":"new","mode":"0644"}`, "", "", "", 0, false},
		{`{"path":"/x","type":"file","mode":"9"}`, "", "", "", 0, false},
		{`{"path":"/x","type":"file","mode":"77777"}`, "", "", "", 0, false},
		{`[]`, "", "", "", 0, false},
	} {
		var i FileInfo
		err := json.Unmarshal([]byte(tc.text), &i)
		if (err == nil) != tc.ok {
			t.Errorf("%s: %v", tc.text, err)
		}
		if tc.ok && (i.Name() != tc.name || i.Path != tc.path || i.Target != tc.target || i.Mode() != tc.mode || i.IsDir() != tc.mode.IsDir()) {
			t.Errorf("%s: %+v", tc.text, i)
		}
	}
}
