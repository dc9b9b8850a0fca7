package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"gaol/internal/snippet"
	"gaol/internal/wire"
	"gaol/runtime/internal/guest"
	"gaol/runtime/internal/hostcall"
	"gaol/runtime/internal/work"
	"gaol/vfs"
)

// isFolderPath reports whether dir is the folder of an absolute path, or empty.
func isFolderPath(dir string) bool {
	if dir == "" || dir == "/" {
		return true
	}
	_, err := vfs.ParsePath(strings.TrimSuffix(dir, "/"))
	return err == nil
}

// translate turns the TypeScript or JSX of p into JavaScript. Code that esbuild refuses becomes a
// program that throws the error. Code that is too large for esbuild is left to Node, which
// can strip types: Format then ends with Node's suffix for TypeScript.
func (s settings) translate(ctx context.Context, p *guest.Program, code string, commonJS bool) error {
	name := p.Path
	script, err := s.work.Translate(ctx, name, code, commonJS)
	syntax, invalid := errors.AsType[*snippet.SyntaxError](err)
	switch {
	case err == nil:
		p.Code, p.Mapped = script, true
	case !invalid:
		return err
	case syntax.Limit && !strings.HasSuffix(name, "x"):
		p.Format = "-typescript"
	default:
		p.Code, p.Mapped = syntax.Program(name), true
	}
	return nil
}

// maxConfig is the longest tsconfig.json that is read, in bytes.
const maxConfig = 64 << 10

// decorators returns comments that select the decorators of the tsconfig.json of the sandbox that is nearest to a folder.
func (rt *NodeRuntime) decorators(dir string) string {
	for ; ; dir = path.Dir(dir) {
		f, err := rt.files.Open(path.Join(dir, "tsconfig.json"))
		if err != nil {
			if dir == "/" {
				return ""
			}
			continue
		}
		defer func() { _ = f.Close() }()
		text, err := io.ReadAll(io.LimitReader(f, maxConfig))
		if err != nil {
			return ""
		}
		return snippet.Pragmas(string(text))
	}
}

// Limits of the files that a run makes the host translate.
const (
	maxTranslations    = 2000
	maxTranslationTime = 30 * time.Second         // of all of them
	maxTranslation     = snippet.MaxCode + 96<<10 // bytes of a frame: a file, its path and its configuration
)

// translator translates the files of TypeScript that a run imports, in the goroutine that reads the
// control channel: its program waits for each. A file is as hostile as the program.
type translator struct {
	work *work.Domain
	out  *hostcall.Writer

	ctx    context.Context // ends with the run
	cancel context.CancelFunc

	count int
	time  time.Duration // that the files so far have taken
}

// answer translates a file in the time that is left to the run. The error is a violation of the
// protocol.
func (t *translator) answer(body []byte) error {
	f, err := wire.ParseTranslation(body)
	if err != nil {
		return err
	}
	began, left := time.Now(), maxTranslationTime-t.time
	if t.count++; t.count > maxTranslations {
		left = 0
	}
	ctx, cancel := context.WithTimeout(t.ctx, left)
	defer cancel()
	code, module, err := t.work.TranslateImport(ctx, f)
	t.time += time.Since(began)
	var reply any = struct {
		Code   string `json:"code"`
		Module bool   `json:"module"`
	}{code, module}
	if err != nil {
		reply = translationError(f.Path, err)
	}
	text, failed := json.Marshal(reply)
	if failed != nil {
		panic(failed) // texts and a boolean
	}
	t.out.Answer(f.ID, err != nil, text)
	return nil
}

// translationError returns the program's error for a file that cannot be translated.
func translationError(name string, err error) *CallError {
	if errors.Is(err, context.DeadlineExceeded) {
		return &CallError{Message: fmt.Sprintf("translate %s: the files of TypeScript of a run are at most %d, and take at most %v", name, maxTranslations, maxTranslationTime), Code: "ERR_TYPESCRIPT_LIMIT"}
	}
	return &CallError{Message: fmt.Sprintf("translate %s: the host failed", name), Code: CodePanic}
}
