package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gaol/cmd/gaol/bench"
	"gaol/runtime"
)

// The flags' own value types. Each refuses what it can't mean, so that a wrong
// flag ends gaol before anything is made; pflag names the flag in the error.

// quote shows a user's own text in a message.
func quote(s string) string { return strconv.Quote(s) }

// size is a number of bytes: digits, then nothing, k, m or g for powers of 1024.
type size int64

var units = []struct {
	suffix string
	bytes  int64
}{{"g", 1 << 30}, {"m", 1 << 20}, {"k", 1 << 10}, {"", 1}}

var errSize = errors.New("want a size like 64k, 256m or 1g")

// Set implements pflag.Value.
func (v *size) Set(s string) error {
	for _, u := range units {
		digits, found := strings.CutSuffix(strings.ToLower(s), u.suffix)
		if !found {
			continue
		}
		// 63 bits: what is larger than an int64 must not wrap around.
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || n == 0 || n > uint64(math.MaxInt64/u.bytes) {
			return errSize
		}
		*v = size(int64(n) * u.bytes)
		return nil
	}
	return errSize
}

// String implements pflag.Value.
func (v *size) String() string {
	for _, u := range units {
		if n := int64(*v); n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.suffix
		}
	}
	return ""
}

// Type implements pflag.Value.
func (*size) Type() string { return "SIZE" }

// bytesOf is a size in a sentence: "16m", or "3 bytes".
func bytesOf(v size) string {
	if v%1024 != 0 {
		return fmt.Sprintf("%d bytes", int64(v))
	}
	return v.String()
}

// count is a whole number above zero.
type count int64

// Set implements pflag.Value.
func (v *count) Set(s string) error {
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil || n == 0 {
		return errors.New("want a whole number above zero")
	}
	*v = count(n)
	return nil
}

// String implements pflag.Value.
func (v *count) String() string { return strconv.FormatInt(int64(*v), 10) }

// Type implements pflag.Value.
func (*count) Type() string { return "N" }

// share is a number above zero, such as half a processor.
type share float64

// Set implements pflag.Value.
func (v *share) Set(s string) error {
	f, err := strconv.ParseFloat(s, 64)
	// Not "f <= 0": a NaN is neither above zero nor below.
	if err != nil || !(f > 0) || math.IsInf(f, 0) {
		return errors.New("want a number above zero like 0.5 or 2")
	}
	*v = share(f)
	return nil
}

// String implements pflag.Value.
func (v *share) String() string { return strconv.FormatFloat(float64(*v), 'g', -1, 64) }

// Type implements pflag.Value.
func (*share) Type() string { return "N" }

// period is a time from zero on; zero switches a limit off, as in timeout(1).
type period time.Duration

// Set implements pflag.Value.
func (v *period) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return errors.New("want a time like 500ms, 5s or 2m")
	}
	*v = period(d)
	return nil
}

// String implements pflag.Value.
func (v *period) String() string {
	if *v == 0 {
		return "0" // which pflag doesn't show as a default
	}
	return time.Duration(*v).String()
}

// Type implements pflag.Value.
func (*period) Type() string { return "TIME" }

// variables are environment variables, each given as NAME=VALUE; the last one
// of a name counts.
type variables map[string]string

// Set implements pflag.Value.
func (v *variables) Set(s string) error {
	name, value, found := strings.Cut(s, "=")
	if !found || name == "" {
		// gaol doesn't take the value from its own environment, as docker
		// does: nothing of the host shows in a guest unless it's written out.
		return errors.New("want NAME=VALUE")
	}
	if *v == nil {
		*v = variables{}
	}
	(*v)[name] = value
	return nil
}

// String implements pflag.Value.
func (v *variables) String() string {
	if len(*v) == 0 {
		return ""
	}
	return fmt.Sprint(map[string]string(*v))
}

// Type implements pflag.Value.
func (*variables) Type() string { return "K=V" }

// launcher is a way to start runs.
type launcher runtime.Launcher

// Set implements pflag.Value.
func (v *launcher) Set(s string) error {
	for _, l := range bothLaunchers {
		if l.String() == s {
			*v = launcher(l)
			return nil
		}
	}
	return errors.New("want exec or zygote")
}

// String implements pflag.Value.
func (v *launcher) String() string { return runtime.Launcher(*v).String() }

// Type implements pflag.Value.
func (*launcher) Type() string { return "NAME" }

// bothLaunchers are all there are.
var bothLaunchers = []runtime.Launcher{runtime.LauncherExec, runtime.LauncherZygote}

// launchers are one or both; none stands for both.
type launchers []runtime.Launcher

// Set implements pflag.Value.
func (v *launchers) Set(s string) error {
	if s == "both" {
		*v = bothLaunchers
		return nil
	}
	var one launcher
	if one.Set(s) != nil {
		return errors.New("want exec, zygote or both")
	}
	*v = launchers{runtime.Launcher(one)}
	return nil
}

// String implements pflag.Value.
func (v *launchers) String() string {
	if len(*v) == 1 {
		return (*v)[0].String()
	}
	return "both"
}

// Type implements pflag.Value.
func (*launchers) Type() string { return "NAME" }

// figures are those of gaol bench; none stands for all.
type figures []bench.ID

// Set implements pflag.Value.
func (v *figures) Set(s string) error {
	for name := range strings.SplitSeq(s, ",") {
		if !slices.Contains(bench.IDs(), bench.ID(name)) {
			return fmt.Errorf("there is no figure %q, but %s", name, strings.Join(figureNames(), ", "))
		}
		*v = append(*v, bench.ID(name))
	}
	return nil
}

// String implements pflag.Value.
func (v *figures) String() string {
	if len(*v) == 0 {
		return ""
	}
	return fmt.Sprint([]bench.ID(*v))
}

// Type implements pflag.Value.
func (*figures) Type() string { return "ID" }

func figureNames() []string {
	var names []string
	for _, id := range bench.IDs() {
		names = append(names, string(id))
	}
	return names
}
