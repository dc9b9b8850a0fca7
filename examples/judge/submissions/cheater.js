console.log(require('fs').readFileSync('/workspace/answers.txt', 'utf8'));
