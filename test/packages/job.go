package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// job is one program.
type job struct {
	name, node, gaol, dir string
	memory                string // gaol's limit
	ca                    string // file of an authority; "": none
	code                  []byte
}

// outcome is a program's output on standard output, and how it ended.
type outcome struct {
	stdout string
	exit   int

	trouble string // why, for a person
	memory  int64  // peak, in bytes; 0: not known
	took    time.Duration
}

// ways are how gaol runs a program, each with the start of its command line.
var ways = []struct {
	name string
	args []string
}{
	{"exec", []string{"run", "--launcher", "exec"}},
	{"zygote", []string{"run", "--launcher", "zygote"}},
	{"eval", []string{"eval"}},
}

// compare runs the program in all ways, writes a line about it, and returns how many
// outcomes differ from plain Node's.
func (j *job) compare(w io.Writer) (failed int, err error) {
	bare, err := j.bare()
	if err != nil {
		return 0, err
	}
	if bare.exit != 0 {
		fmt.Fprintf(w, "%s\tplain Node exits with %d: %s\n", j.name, bare.exit, shorten(bare.trouble))
		return 1, nil
	}
	fmt.Fprintf(w, "%s\tnode %.1fs", j.name, bare.took.Seconds())
	var notes []string
	for _, way := range ways {
		o, err := j.jailed(way.args)
		if err != nil {
			return 0, err
		}
		verdict := "ok"
		reason, isKnown := known[j.name+" "+way.name]
		switch same := o.stdout == bare.stdout && o.exit == 0; {
		case same && isKnown:
			verdict, failed = "UNEXPECTED OK", failed+1
		case isKnown:
			verdict = "known: " + reason
		case !same:
			verdict, failed = "DIFFERS", failed+1
			notes = append(notes, j.explain(way.name, bare, o))
		}
		fmt.Fprintf(w, "\t%s %s %.1fs %d MB", way.name, verdict, o.took.Seconds(), o.memory>>20)
	}
	fmt.Fprintln(w)
	for _, note := range notes {
		fmt.Fprintln(w, note)
	}
	return failed, nil
}

func (j *job) explain(way string, bare, o outcome) string {
	text := fmt.Sprintf("  %s by %s: exit %d", j.name, way, o.exit)
	if o.stdout != bare.stdout {
		text += fmt.Sprintf("\n    printed %q\n    not     %q", shorten(o.stdout), shorten(bare.stdout))
	}
	return text + "\n    " + strings.ReplaceAll(shorten(o.trouble), "\n", "\n    ")
}

func shorten(text string) string {
	const most = 1500
	if len(text) > most {
		return text[:most] + "…"
	}
	return strings.TrimSpace(text)
}

// inFolder calls do with a new folder that contains the program and the packages.
func (j *job) inFolder(do func(folder string) error) (err error) {
	folder, err := os.MkdirTemp("", "gaol-packages-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	err = errors.Join(
		os.WriteFile(filepath.Join(folder, j.name), j.code, 0o644),
		os.Symlink(filepath.Join(j.dir, "node_modules"), filepath.Join(folder, "node_modules")),
	)
	return cmp.Or(err, do(folder))
}

// bare runs the program with plain Node, with the same variables as in a jail.
func (j *job) bare() (o outcome, err error) {
	err = j.inFolder(func(folder string) error {
		cmd := exec.Command(j.node, j.name)
		cmd.Dir = folder
		cmd.Env = []string{"PATH=" + filepath.Dir(j.node) + ":/usr/local/bin:/usr/bin:/bin", "HOME=" + folder, "USER=node", "LANG=C.UTF-8", "TMPDIR=/tmp", "CA=" + j.ca}
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		began := time.Now()
		err := cmd.Run()
		o = outcome{stdout: stdout.String(), exit: cmd.ProcessState.ExitCode(), trouble: stderr.String(), took: time.Since(began)}
		if _, failed := errors.AsType[*exec.ExitError](err); failed {
			return nil
		}
		return err
	})
	return o, err
}

// jailed runs it by gaol.
func (j *job) jailed(args []string) (o outcome, err error) {
	err = j.inFolder(func(folder string) error {
		args := append(append([]string{}, args...), "--json", "--memory", j.memory, "--node-modules", filepath.Join(j.dir, "node_modules"))
		if j.ca != "" {
			args = append(args, "--file", "/tmp/ca.pem="+j.ca, "--env", "CA=/tmp/ca.pem")
		}
		args = append(append(args, j.flags()...), filepath.Join(folder, j.name))
		cmd := exec.Command(j.gaol, args...)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
			return err
		}
		o = readOutcome(stdout.Bytes(), cmd.ProcessState.ExitCode())
		o.trouble += stderr.String()
		return nil
	})
	return o, err
}

// flags are those on the program's first line.
func (j *job) flags() []string {
	first, _, _ := strings.Cut(string(j.code), "\n")
	flags, found := strings.CutPrefix(first, "// gaol: ")
	if !found {
		return nil
	}
	return strings.Fields(flags)
}

// readOutcome reads the object that gaol run --json or gaol eval --json printed.
func readOutcome(text []byte, exit int) outcome {
	var object struct {
		Stdout, Stderr, Cause string
		DurationMs            float64
		Usage                 struct{ PeakMemoryBytes int64 }
		Denials               []json.RawMessage
		Logs                  []struct{ Level, Text string }
		Error                 *struct{ Stack, Message string }
	}
	if err := json.Unmarshal(text, &object); err != nil {
		return outcome{exit: exit, trouble: fmt.Sprintf("no object: %v\n", err)}
	}
	o := outcome{stdout: object.Stdout, exit: exit, trouble: object.Stderr + object.Cause + "\n", memory: object.Usage.PeakMemoryBytes}
	o.took = time.Duration(object.DurationMs * float64(time.Millisecond))
	for _, l := range object.Logs {
		if l.Level == "warn" || l.Level == "error" || l.Level == "stderr" {
			o.trouble += l.Text + "\n"
			continue
		}
		o.stdout += l.Text + "\n"
	}
	if object.Error != nil {
		o.trouble += cmp.Or(object.Error.Stack, object.Error.Message) + "\n"
	}
	for _, d := range object.Denials {
		o.trouble += string(d) + "\n"
	}
	return o
}
