const semver = require('semver');
console.log(semver.satisfies('1.4.2', '^1.3 || >=3'), semver.inc('1.2.3', 'minor'), semver.sort(['1.10.0', '1.9.0', '1.10.0-rc.1']));
