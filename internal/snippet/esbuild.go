package snippet

import (
	"cmp"
	"strings"
	"sync"

	"github.com/evanw/esbuild/pkg/api"
)

// The file name decides whether esbuild reads the code as a module.
const (
	moduleName = "snippet.mts"
	scriptName = "snippet.ts"
)

// check reports the first error that esbuild finds in parsed JavaScript.
func (c *compiler) check(d draft) *SyntaxError {
	if c.isValid(d) {
		return nil
	}
	if result := c.transform(d, api.TransformOptions{Loader: api.LoaderJS}); len(result.Errors) > 0 {
		return c.syntaxError(d, result)
	}
	return nil
}

// isValid reports whether esbuild finds no error in the code. It appends a break, which is
// invalid there, and checks that this is the only error: esbuild continues after it, so
// that it has checked all of the code, but does not print any, which would take half of
// its time.
func (c *compiler) isValid(d draft) bool {
	const last = "break"
	d.text += "\n;" + last
	result := c.transform(d, api.TransformOptions{Loader: api.LoaderJS})
	return len(result.Errors) == 1 && d.offset(result.Errors[0]) == len(d.text)-len(last)
}

// translate translates TypeScript or JSX to JavaScript. The source map is only made when a position
// is needed, for code that fails.
func (c *compiler) translate(d draft, loader api.Loader, keep imports) (draft, *SyntaxError) {
	result := c.transform(d, api.TransformOptions{Loader: loader, TsconfigRaw: keep.config(LegacyDecorators(d.text))})
	if len(result.Errors) > 0 {
		return draft{}, c.syntaxError(d, result)
	}
	sources := sync.OnceValue(func() []byte {
		return c.transform(d, api.TransformOptions{
			Loader:         loader,
			TsconfigRaw:    keep.config(LegacyDecorators(d.text)),
			Sourcemap:      api.SourceMapExternal,
			SourcesContent: api.SourcesContentExclude,
		}).Map
	})
	return d.with(string(result.Code), mapped{d.text, string(result.Code), sources}), nil
}

func (c *compiler) transform(d draft, options api.TransformOptions) api.TransformResult {
	options.Sourcefile = cmp.Or(c.file, scriptName)
	if c.module {
		options.Sourcefile = moduleName
	}
	options.Target = api.ESNext
	options.Supported = map[string]bool{"decorators": false} // V8 does not support them yet
	options.Charset = api.CharsetUTF8
	options.JSX = api.JSXTransform
	options.TsconfigRaw = cmp.Or(options.TsconfigRaw, keepsImports.config(LegacyDecorators(d.text)))
	options.TreeShaking = api.TreeShakingFalse
	options.LogLevel = api.LogLevelSilent
	result := api.Transform(d.text, options)
	if UsesMetadata(d.text, string(result.Code)) {
		result.Errors = append(result.Errors, api.Message{Text: NoMetadata})
	}
	return result
}

// syntaxError returns esbuild's first message.
func (c *compiler) syntaxError(d draft, result api.TransformResult) *SyntaxError {
	c.conclusive = c.conclusive || len(result.Errors) > conclusiveErrors
	text := result.Errors[0].Text
	if strings.HasPrefix(text, "Parameter decorators only work") { // the only error whose reason esbuild gives in notes
		text = "decorators of parameters need experimentalDecorators in tsconfig.json, or a comment with " + legacyPragma
	}
	return d.errorAt(d.offset(result.Errors[0]), text)
}

// offset returns the offset of a message, whose columns count bytes, from 0.
func (d draft) offset(m api.Message) int {
	offset := 0
	if at := m.Location; at != nil {
		offset = max(0, offsetOf(d.text, at.Line, 1)) + at.Column
	}
	return min(offset, len(d.text))
}
