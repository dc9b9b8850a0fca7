package runtime

import (
	"cmp"
	"fmt"
	"strings"

	"gaol/internal/lazyregexp"
	"gaol/policy"
)

// leastFree is how many free bytes of a tree count as none: file systems need some for themselves.
const leastFree = 16 << 10

// noSpace matches the last message about a lack of space, with its line before it and Node's call after it.
var noSpace = lazyregexp.New(`(?is)^(?:.*\n)?([^\n]*)(no space left on device|file too large)(?:, (\w+))?`)

// newFile matches words for calls that need a file more, and few bytes: Node's, and in messages of other programs.
var newFile = lazyregexp.New(`(?i)create|mkdir|mkdtemp|open|touch|link|rename`)

// full returns denials for the limits of a tree that a failed run has reached, given the free bytes and files. Programs
// such as npm remove their files when they fail: if both are left, the last error in text decides.
func (l *Limits) full(disk, files int64, text string) (list []Denial) {
	d := Denial{Scope: policy.Limits, Source: SourceLimits}
	noDisk, noFiles := disk < leastFree, files <= 0
	if m := noSpace().FindStringSubmatch(text); m != nil && !noDisk && !noFiles {
		d.Source = SourceStderr
		switch call := cmp.Or(m[3], m[1]); {
		case strings.EqualFold(m[2], "file too large"):
		case newFile().MatchString(call):
			noFiles = true
		case m[3] == "": // unknown: the fuller one
			noFiles = float64(files)/float64(l.Files) < float64(disk)/float64(l.Disk)
		}
		noDisk = !noFiles
	}
	if noDisk {
		d.Operation, d.Target, d.Rule = "disk", formatBytes(l.Disk), "limits.diskBytes"
		list = append(list, d)
	}
	if noFiles {
		d.Operation, d.Target, d.Rule = "files", fmt.Sprint(l.Files), "limits.files"
		list = append(list, d)
	}
	return list
}

// addLimits adds denials for the limits that a failed run has reached, of the tree and of memory. If the kernel killed
// the run for memory, held is how many bytes of that were files in memory: the tree, unless it is on disk. text is the
// end of what the run reported.
func (p *Process) addLimits(text string, held int64) {
	l := p.rt.opts.Limits
	if p.rt.opts.writesHost() {
		text = "" // the host's file system may be full instead
	}
	if disk, files, err := p.rt.sandbox.Free(); err == nil { // otherwise the runtime is closed
		for _, d := range l.full(disk, files, text) {
			p.denials.Add(d)
		}
	}
	if held >= l.Memory/8 && !l.onDisk() {
		target := fmt.Sprintf("%s, of which files in memory take %s", formatBytes(l.Memory), formatBytes(held>>20<<20))
		p.denials.Add(Denial{Scope: policy.Limits, Operation: "memory", Target: target, Rule: "limits.memoryBytes", Source: SourceLimits})
	}
}
