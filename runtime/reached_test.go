package runtime

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLimitsFull(t *testing.T) {
	l := Limits{Disk: 1 << 20, Files: 100}
	disk := Denial{Scope: "limits", Operation: "disk", Target: "1 MiB", Rule: "limits.diskBytes", Source: SourceLimits}
	files := Denial{Scope: "limits", Operation: "files", Target: "100", Rule: "limits.files", Source: SourceLimits}
	reported := func(d Denial) []Denial {
		d.Source = SourceStderr
		return []Denial{d}
	}
	const left = 1 << 19 // half of both limits is free, if not said otherwise
	for name, tc := range map[string]struct {
		disk, files int64
		text        string
		want        []Denial
	}{
		"nothing reached":           {left, 50, "Error: EACCES: permission denied, open 'a'", nil},
		"no bytes":                  {0, 50, "", []Denial{disk}},
		"few bytes":                 {4096, 50, "", []Denial{disk}},
		"few bytes more":            {64 << 10, 50, "", nil},
		"no files":                  {left, 0, "", []Denial{files}},
		"neither":                   {0, 0, "", []Denial{disk, files}},
		"no files, and a message":   {left, 0, "ENOSPC: no space left on device, write", []Denial{files}},
		"removed since, of write":   {left, 50, "npm error nospc ENOSPC: no space left on device, write\nnpm error nospc", reported(disk)},
		"removed since, of mkdir":   {left, 50, "Error: ENOSPC: no space left on device, mkdir '/workspace/a'", reported(files)},
		"the last message decides":  {left, 50, "ENOSPC: no space left on device, write\nENOSPC: no space left on device, open 'a'\nat x", reported(files)},
		"a longer file":             {left, 10, "Error: EFBIG: file too large, ftruncate", reported(disk)},
		"a folder of a command":     {left, 50, "mkdir: can't create directory 'a': No space left on device\nexit", reported(files)},
		"a file of git":             {left, 50, "error: unable to create file a: No space left on device", reported(files)},
		"a name in an earlier line": {left, 50, "cannot create\ntar: a: Cannot write: No space left on device", reported(disk)},
		"of another program":        {left, 10, "cp: error writing 'a': No space left on device", reported(files)},
		"fewer bytes":               {100 << 10, 50, "cp: error writing 'a': No space left on device", reported(disk)},
		"a file of another":         {left, 10, "sh: 1: File too large", reported(disk)},
	} {
		if diff := cmp.Diff(tc.want, l.full(tc.disk, tc.files, tc.text)); diff != "" {
			t.Errorf("%s (- want, + got):\n%s", name, diff)
		}
	}
}
