// Tries to become the root user that owns the system's files, and to change one of them.
import fs from 'node:fs'
import path from 'node:path'

const done = [], tried = { files: 0, folders: 0, own: 0 }

function attempt(what, call) {
  try {
    call()
    return done.push(what)
  } catch (err) {
    return 0
  }
}

attempt('setuid', () => process.setuid(0))
attempt('seteuid', () => process.seteuid(0))
attempt('setgid', () => process.setgid(0))
attempt('setegid', () => process.setegid(0))
attempt('setgroups', () => process.setgroups([0]))
attempt('initgroups', () => process.initgroups('root', 0))

fs.writeFileSync('/tmp/own', '')
fs.mkdirSync('/tmp/folder')
attempt('chown', () => fs.chownSync('/tmp/own', 0, 0))
attempt('chown to its group', () => fs.chownSync('/tmp/own', 1000, 0))
attempt('move root\'s folder', () => fs.renameSync('/tmp', '/workspace/tmp'))

function attack(file) {
  const info = fs.lstatSync(file)
  if (info.uid !== 0 || info.gid !== 0) return
  const before = done.length
  attempt(`chmod ${file}`, () => info.isSymbolicLink() ? fs.lchownSync(file, 1000, 1000) : fs.chmodSync(file, info.mode & 0o7777))
  attempt(`chown ${file}`, () => fs.lchownSync(file, 1000, 1000))
  attempt(`utimes ${file}`, () => fs.lutimesSync(file, 1, 1))
  if (info.isFile()) {
    tried.files++
    attempt(`write ${file}`, () => fs.closeSync(fs.openSync(file, 'r+')))
    attempt(`unlink ${file}`, () => fs.unlinkSync(file))
  }
  if (info.isDirectory()) {
    tried.folders++
    const open = (info.mode & 0o1002) === 0o1002
    if (!open) attempt(`make in ${file}`, () => fs.mkdirSync(path.join(file, 'made')))
    attempt(`remove ${file}`, () => fs.rmdirSync(file))
  }
  return done.length === before
}

// The same attempts on its own files succeed, which shows that they work.
for (const file of ['/tmp/own', '/tmp/folder']) {
  fs.chmodSync(file, 0o700)
  fs.lutimesSync(file, 1, 1)
  tried.own++
}

function walk(dir) {
  attack(dir)
  for (const entry of fs.readdirSync(dir, { withFileTypes: true })) {
    const file = path.join(dir, entry.name)
    if (file === '/proc' || file === '/run/gaol') continue // which no guest may list
    if (entry.isDirectory() && fs.lstatSync(file).mode & 0o005) walk(file)
    else attack(file)
  }
}
walk('/')

const status = fs.readFileSync('/proc/self/status', 'utf8')
__return({ done, tried, ids: status.match(/^(Uid|Gid|Groups|Cap...):.*$/gm) })
