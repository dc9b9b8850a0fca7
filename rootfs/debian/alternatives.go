package debian

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"gaol/internal/lazyregexp"
	"gaol/rootfs/layer"
)

// alternative is a link that a maintainer script makes with update-alternatives.
type alternative struct {
	link, target string
	priority     int
}

// Bounds of the maintainer scripts that are read: bytes, and the words of a loop.
const (
	maxScript = 64 << 10
	maxWords  = 100
)

// alternatives reads the links from the script postinst of a package, which is not run.
func (a *apt) alternatives(ctx context.Context, p Package) (found []alternative, err error) {
	err = a.archive(ctx, p, "--ctrl-tarfile", func(r io.Reader) error {
		for archive := tar.NewReader(r); ; {
			h, err := archive.Next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if strings.TrimPrefix(h.Name, "./") != "postinst" {
				continue
			}
			script, err := io.ReadAll(io.LimitReader(archive, maxScript))
			if err != nil {
				return err
			}
			found = parseAlternatives(string(script))
		}
	})
	return found, err
}

var (
	plainPath  = lazyregexp.New(`^/[A-Za-z0-9/._+-]+$`) // which the shell does not change
	assignment = lazyregexp.New("^\\s*([A-Za-z_]+)=(?:'([^'$`\\\\]{0,1000})'|\"([^\"$`\\\\]{0,1000})\"|([A-Za-z0-9/._+-]{0,1000}))\\s*$")
	loopHead   = lazyregexp.New(`^\s*for ([A-Za-z_]+) in ([A-Za-z0-9 ._+${}-]*)`)
)

// parseAlternatives returns the links of the commands
//
//	update-alternatives --install LINK NAME TARGET PRIORITY [--slave LINK NAME TARGET]...
//
// whose paths are literal, or consist of variables with literal values and of the variable of a loop. It ignores all
// other syntax of the shell.
func parseAlternatives(script string) (found []alternative) {
	loop, words, values := "", []string{""}, map[string]string{}
	expand := func(text string) string {
		return os.Expand(text, func(name string) string { return cmp.Or(values[name], "$") }) // no path
	}
	for line := range strings.Lines(strings.ReplaceAll(script, "\\\n", " ")) {
		if m := assignment().FindStringSubmatch(line); m != nil {
			values[m[1]] = m[2] + m[3] + m[4]
		} else if m := loopHead().FindStringSubmatch(line); m != nil {
			words = strings.Fields(expand(m[2]))
			loop, words = m[1], words[:min(len(words), maxWords)]
		}
		if strings.TrimSpace(line) == "done" {
			loop, words = "", []string{""}
		}
		before, after, isInstall := strings.Cut(line, " --install ")
		if !isInstall || !strings.Contains(before, "update-alternatives") {
			continue
		}
		for _, word := range words {
			values[loop] = word
			found = append(found, parseInstall(strings.Fields(expand(after)))...)
		}
	}
	return found
}

// parseInstall returns the links of the arguments of --install.
func parseInstall(words []string) (found []alternative) {
	if len(words) < 4 {
		return nil
	}
	priority, err := strconv.Atoi(words[3])
	if err != nil {
		return nil
	}
	for words = slices.Delete(words, 3, 4); len(words) >= 3; words = words[1:] {
		link, badLink := imagePath(words[0][1:])
		target, badTarget := imagePath(words[2][1:])
		if plainPath().MatchString(words[0]) && plainPath().MatchString(words[2]) && badLink == nil && badTarget == nil {
			found = append(found, alternative{link, target, priority})
		}
		if words = words[3:]; len(words) == 0 || words[0] != "--slave" {
			break
		}
	}
	return found
}

// linkAlternatives makes the links whose target exists and whose path is free, the highest priority first.
func linkAlternatives(t *layer.Tree, all []alternative) error {
	slices.SortStableFunc(all, func(x, y alternative) int { return cmp.Compare(y.priority, x.priority) })
	for _, l := range all {
		if t.Has(l.link) || !t.Has(l.target) {
			continue
		}
		if err := t.Symlink(l.link, l.target); err != nil {
			return err
		}
	}
	return nil
}
