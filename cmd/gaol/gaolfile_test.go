package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/rootfs"
)

// parse parses the text of a Gaolfile in an empty folder.
func parseGaolfile(t testing.TB, text string) (gaolfile, error) {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	a := &app{stdin: strings.NewReader(text)}
	return a.readGaolfile(t.Context(), "-", root)
}

func TestGaolfile(t *testing.T) {
	f, err := parseGaolfile(t, `# comment
FROM python3

run echo "a  b"   # not a comment \
	&& echo \$HOME
WITH jq,ffmpeg  make
COPY "a file" b\ c 'dir'/x /to/
ENV A=1 B="two words" C='$literal' D=\$x E=a\"b
WORKDIR /a b
USER node
RUN --preset=strict --timeout=5s --memory=64m npm ci
`)
	if err != nil {
		t.Fatal(err)
	}
	type step struct {
		Run         string
		With, Copy  []string
		Env         map[string]string
		Dir, User   string
		OwnSettings bool
	}
	var got []step
	for _, s := range f.steps {
		one := step{Run: s.Run, With: s.With, Env: s.Env, Dir: s.Dir, User: s.User, OwnSettings: s.Runner != nil}
		if s.Copy != nil {
			one.Copy = slices.Concat(s.Copy.From, []string{s.Copy.To})
		}
		got = append(got, one)
	}
	want := []step{
		{Run: `echo "a  b"   # not a comment  && echo \$HOME`},
		{With: []string{"jq", "ffmpeg", "make"}},
		{Copy: []string{"a file", "b c", "dir/x", "/to/"}},
		{Env: map[string]string{"A": "1", "B": "two words", "C": `\$literal`, "D": `\$x`, "E": `a"b`}},
		{Dir: "/a b"}, {User: "node"},
		{Run: "npm ci", OwnSettings: true},
	}
	if diff := cmp.Diff(want, got); f.from != "python3" || diff != "" {
		t.Errorf("from %s, steps (-want +got):\n%s", f.from, diff)
	}
}

func TestGaolfileErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "no instruction beside FROM",
		"FROM a":                          "no instruction beside FROM",
		"RUN true\nFROM a":                "standard input:2: FROM: it is the first instruction",
		"FROM a\nFROM b":                  "standard input:2: FROM",
		"RUN":                             "standard input:1: RUN: no argument",
		"\n\nEXPOSE 80":                   `standard input:3: "EXPOSE" is not one of FROM`,
		"RUN --memory=64m":                "no command",
		"RUN --memory=lots true":          "RUN: invalid argument",
		"RUN --memory 64m true":           "RUN: ", // want --memory=64m
		"RUN --permissions='{ true":       "a quote is not closed",
		"RUN --preset=nosuch true":        "want one of",
		"RUN --permissions=@/etc/x true":  "names no files of the host",
		"RUN --allow-net=file:///x true":  "--allow-net",
		"COPY a":                          "want SOURCE... TARGET",
		"COPY ../a b":                     "outside of the folder",
		"COPY /etc/passwd b":              "outside of the folder",
		`COPY "a b`:                       "a quote is not closed",
		"ENV A":                           `"A": want NAME=VALUE`,
		"ENV =b":                          `"=b": want NAME=VALUE`,
		"RUN " + strings.Repeat("a", 1e5): "more than",
	} {
		if _, err := parseGaolfile(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
}

func FuzzGaolfile(f *testing.F) {
	f.Add("FROM a\nRUN --preset=npm npm ci \\\n&& true\nCOPY a 'b c' /d\nENV A=\"b\" C=$D\nWITH x,y\nUSER node\nWORKDIR /")
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := parseGaolfile(t, text)
		if err != nil {
			return
		}
		for _, s := range parsed.steps {
			kinds := 0
			for _, set := range []bool{s.Run != "", s.With != nil, s.Copy != nil, s.Env != nil, s.User != "", s.Dir != ""} {
				if set {
					kinds++
				}
			}
			if kinds != 1 {
				t.Errorf("%q: %+v", text, rootfs.Step{Run: s.Run, With: s.With, Env: s.Env, User: s.User, Dir: s.Dir})
			}
		}
	})
}
