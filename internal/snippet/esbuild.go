package snippet

import (
	"cmp"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// The file name decides whether esbuild reads the code as a module.
const (
	sourceName = "snippet."
	moduleName = sourceName + "mts"
	scriptName = sourceName + "ts"
)

// check reports the first error that esbuild finds in parsed JavaScript.
func (c *compiler) check(d draft) *SyntaxError {
	_, err := c.transform(d, api.TransformOptions{Loader: api.LoaderJS})
	return err
}

// translate translates TypeScript or JSX to JavaScript.
func (c *compiler) translate(d draft, loader api.Loader, keep imports) (draft, *SyntaxError) {
	result, err := c.transform(d, api.TransformOptions{
		Loader: loader, TsconfigRaw: keep.config(LegacyDecorators(d.text)),
		Sourcemap: api.SourceMapExternal, SourcesContent: api.SourcesContentExclude,
	})
	if err != nil {
		return draft{}, err
	}
	return d.with(string(result.Code), Stage{From: []byte(d.text), To: result.Code, Map: result.Map}), nil
}

// transform runs esbuild. The error is the first of the result.
func (c *compiler) transform(d draft, options api.TransformOptions) (api.TransformResult, *SyntaxError) {
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
	if len(result.Errors) == 0 {
		return result, nil
	}
	text := result.Errors[0].Text
	if strings.HasPrefix(text, "Parameter decorators only work") { // the only error whose reason esbuild gives in notes
		text = "decorators of parameters need experimentalDecorators in tsconfig.json, or a comment with " + legacyPragma
	}
	return result, d.errorAt(d.offset(result.Errors[0]), text)
}

// offset returns the offset of a message, whose columns count bytes, from 0.
func (d draft) offset(m api.Message) int {
	offset := 0
	if at := m.Location; at != nil {
		offset = max(0, offsetOf(d.text, at.Line, 1)) + at.Column
	}
	return min(offset, len(d.text))
}
