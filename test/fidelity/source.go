package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gaol/rootfs/debian"
)

// source returns the folder with the files of Node's tests in dir, which it fetches if
// they are missing, and their version.
func source(dir, version string) (folder, found string, err error) {
	if have, err := filepath.Glob(filepath.Join(dir, "node-*", "test")); err == nil && len(have) == 1 {
		folder := filepath.Dir(have[0])
		return folder, strings.TrimPrefix(filepath.Base(folder), "node-"), nil
	}
	a, err := newApt(filepath.Join(dir, "apt"))
	if err != nil {
		return "", "", err
	}
	versions, err := a.versions("nodejs")
	if err != nil {
		return "", "", err
	}
	slices.SortFunc(versions, func(v, w string) int { return cmp.Compare(distance(v, version), distance(w, version)) })
	for _, v := range versions {
		tarball, failed := a.fetch("nodejs", v)
		if failed != nil { // the archive may be newer than its index
			err = errors.Join(err, failed)
			continue
		}
		upstream, _, _ := strings.Cut(v, "+")
		folder := filepath.Join(dir, "node-"+upstream)
		return folder, upstream, unpack(tarball, folder)
	}
	return "", "", fmt.Errorf("no source of Node can be fetched: %w", err)
}

// distance is how far a version is from another: majors count before minors.
func distance(version, from string) (d int) {
	a, b := numbers(version), numbers(from)
	for i := range a {
		d = d*1000 + max(a[i]-b[i], b[i]-a[i])
	}
	return d
}

var digits = regexp.MustCompile(`\d+`)

func numbers(version string) (n [3]int) {
	for i, text := range digits.FindAllString(version, len(n)) {
		n[i], _ = strconv.Atoi(text)
	}
	return n
}

// apt is Debian's package tool with an index of its own, of source packages.
type apt struct{ debian.Apt }

func newApt(dir string) (*apt, error) {
	for _, d := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	archive, err := debianArchive()
	if err != nil {
		return nil, err
	}
	var list strings.Builder
	for _, suite := range []string{"sid", "testing", "stable"} {
		fmt.Fprintf(&list, "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n", archive, suite)
	}
	sources := filepath.Join(dir, "sources.list")
	if err := os.WriteFile(sources, []byte(list.String()), 0o644); err != nil {
		return nil, err
	}
	a := &apt{debian.Apt{Dir: dir, Options: []string{
		"-q", "-o", "Dir::Etc::sourcelist=" + sources, "-o", "Dir::Etc::sourceparts=-",
		"-o", "Dir::State::lists=" + filepath.Join(dir, "lists"), "-o", "Dir::Cache=" + filepath.Join(dir, "cache"),
	}}}
	_, err = a.run("apt-get", "update")
	return a, err
}

// debianArchive is the address of Debian's archive that this machine uses.
func debianArchive() (string, error) {
	out, err := exec.Command("apt-get", "indextargets", "--format", "$(LABEL) $(REPO_URI)", "Created-By: Packages").Output()
	if err != nil {
		return "", fmt.Errorf("apt-get indextargets: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		if uri, found := strings.CutPrefix(strings.TrimSpace(line), "Debian "); found {
			return uri, nil
		}
	}
	return "", errors.New("apt knows no archive of Debian: add one to /etc/apt/sources.list, and run apt-get update")
}

func (a *apt) run(program string, args ...string) ([]byte, error) {
	return a.Run(context.Background(), program, args...)
}

func (a *apt) versions(name string) (versions []string, err error) {
	out, err := a.run("apt-cache", "showsrc", "--only-source", name)
	for line := range strings.Lines(string(out)) {
		if v, found := strings.CutPrefix(line, "Version: "); found && !slices.Contains(versions, strings.TrimSpace(v)) {
			versions = append(versions, strings.TrimSpace(v))
		}
	}
	return versions, err
}

// fetch returns the path of a version's upstream tarball, whose hash apt has checked.
// Other files of the source package need not exist.
func (a *apt) fetch(name, version string) (string, error) {
	_, err := a.run("apt-get", "source", "--download-only", "--tar-only", name+"="+version)
	upstream := version[:max(strings.LastIndexByte(version, '-'), 0)]
	tarball := filepath.Join(a.Dir, name+"_"+upstream+".orig.tar.xz")
	if _, missing := os.Stat(tarball); missing != nil {
		return "", cmp.Or(err, missing)
	}
	return tarball, nil
}

// unpack puts what tests read of a source tree into folder, as the user that plain Node
// runs as.
func unpack(tarball, folder string) error {
	part := folder + ".part"
	if err := errors.Join(os.RemoveAll(part), os.MkdirAll(part, 0o755)); err != nil {
		return err
	}
	args := []string{"-x", "-J", "-f", tarball, "-C", part, "--strip-components=1", "--no-same-owner", "--wildcards"}
	for _, name := range []string{"test", "tools", "lib", "doc", "deps/npm", "deps/acorn", "deps/undici"} {
		args = append(args, "*/"+name+"/*")
	}
	cmd := exec.Command("tar", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	if _, missing := os.Stat(filepath.Join(part, "test", "parallel")); missing != nil {
		return fmt.Errorf("unpack %s: %w\n%s", tarball, cmp.Or(err, missing), stderr.Bytes())
	}
	if err := exec.Command("chown", "-R", fmt.Sprintf("%d:%d", plainUser, plainUser), part).Run(); err != nil {
		return fmt.Errorf("chown: %w", err)
	}
	return os.Rename(part, folder)
}
