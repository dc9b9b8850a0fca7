const ts = require('typescript');
const source = 'interface P { x: number }\nconst p: P = { x: "1" };\nexport const f = async <T,>(v: T) => v ?? p;\n';
console.log(ts.transpileModule(source, { compilerOptions: { target: ts.ScriptTarget.ES2020, module: ts.ModuleKind.CommonJS } }).outputText);
const host = ts.createCompilerHost({});
const { getSourceFile } = host;
host.getSourceFile = (name, ...rest) => (name === 'p.ts' ? ts.createSourceFile(name, source, ts.ScriptTarget.ES2022) : getSourceFile.call(host, name, ...rest));
const program = ts.createProgram(['p.ts'], { noEmit: true, strict: true, target: ts.ScriptTarget.ES2022, types: [] }, host);
console.log(ts.getPreEmitDiagnostics(program).map((d) => `${d.code} ${ts.flattenDiagnosticMessageText(d.messageText, '\n')}`));
