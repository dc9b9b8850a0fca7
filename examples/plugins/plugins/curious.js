// Tries to read a file, which its permissions deny.
import { readFileSync } from 'node:fs';

function onOrder() {
  return readFileSync('/etc/passwd', 'utf8');
}
