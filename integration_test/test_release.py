"""The archive for other machines (docs/releases.md): what is in it, that it is the same each time, that what would not run elsewhere is refused."""

import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess

import common

BUILD = pathlib.Path(os.environ.get('WINDLASS_BUILD', common.ROOT / 'build'))
SCRIPT = common.ROOT / 'scripts' / 'release'


def loaded():
    loader = importlib.machinery.SourceFileLoader('release', str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader('release', loader))
    loader.exec_module(module)
    return module


class ReleaseTest(common.Case):
    def pack(self, name):
        folder = self.folder / name
        done = common.run([SCRIPT, '--build', BUILD, '-o', folder], env={'SOURCE_DATE_EPOCH': '1700000000'}, timeout=600)
        self.assertEqual(done.code, 0, done.err)
        subprocess.run(['sha256sum', '--check', '--quiet', *folder.glob('*.sha256')], cwd=folder, check=True)
        return next(folder.glob('*.tar.xz'))

    def test_archive(self):
        archive = self.pack('one')
        self.assertEqual(self.pack('two').read_bytes(), archive.read_bytes())
        subprocess.run(['tar', '-C', self.folder, '-xf', archive], check=True)
        place = self.folder / archive.name.removesuffix('.tar.xz')
        self.assertIn('windlass 0', common.run([place / 'bin' / 'windlass', '--version'], env={'PATH': '/usr/bin:/bin'}).out)
        self.assertIn('openmpi-bin\n', (place / 'share/windlass/packages.txt').read_text())
        bill = json.loads((place / 'share/doc/windlass/sbom.cdx.json').read_text())
        parts = {part['name']: part['properties'][0]['value'] for part in bill['components']}
        self.assertEqual({name: parts.get(name) for name in ('libmlir-22-dev', 'llvm-22-dev', 'libprotobuf-lite32', 'libstdc++6')},
                         {'libmlir-22-dev': 'static', 'llvm-22-dev': 'static', 'libprotobuf-lite32': 'shared', 'libstdc++6': 'shared'})
        self.assertNotIn('unknown', {part['version'] for part in bill['components']})

    def test_what_other_systems_lack_is_found(self):
        source, binary = self.folder / 'main.c', self.folder / 'main'
        source.write_text('int main(void) { return 0; }\n')
        release = loaded()
        subprocess.run(['cc', source, '-o', binary], check=True)
        self.assertEqual(release.faults_of(binary), [])
        subprocess.run(['cc', source, '-o', binary, '-Wl,--no-as-needed', '-l:libmpi_cxx.so.40', '-Wl,-rpath,/opt/here'], check=True)
        self.assertEqual(release.faults_of(binary), ['needs libmpi_cxx.so.40, which one of the systems lacks', 'looks for libraries in /opt/here'])
        release.NEWEST['GLIBC'] = (2, 1)
        subprocess.run(['cc', source, '-o', binary], check=True)
        self.assertRegex(release.faults_of(binary)[0], r'^needs GLIBC_2[\d.]+; Debian 12 has 2\.1$')


common.main()
