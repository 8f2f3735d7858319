"""`windlass doctor` finds what is installed, says what is lost without the rest, and fails only where nothing can train."""

import json
import os
import re
import shutil
import subprocess

import common

DRIVER = r'''
#include <cstring>
extern "C" {
int cuInit(unsigned) { return RESULT; }
int cuDeviceGetCount(int *n) { *n = 2; return 0; }
int cuDeviceGet(int *device, int i) { *device = i; return 0; }
int cuDeviceGetName(char *name, int size, int device) { std::strncpy(name, device ? "Second" : "First", size); return 0; }
int cuDeviceTotalMem_v2(std::size_t *bytes, int) { *bytes = std::size_t(80) << 30; return 0; }
}
'''


class DoctorTest(common.Case):
    def examine(self, **options):
        outcome = common.windlass('doctor', '--json', **options)
        return outcome, {row['name']: row for row in json.loads(outcome.out)}

    def path_of(self, *names):
        """Returns a folder for PATH that holds these programs only."""
        folder = self.folder / 'bin'
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name in names:
            (folder / name).symlink_to(shutil.which(name))
        return {'PATH': str(folder), 'CXX': ''}

    def test_this_machine(self):
        outcome, found = self.examine()
        self.assertEqual(outcome.code, 0)
        for name in ('C++ compiler', 'CMake', 'MLIR', 'GEMM', 'memory', 'processors', 'disk for runs'):
            self.assertNotEqual(found[name]['state'], 'missing', name)
            self.assertTrue(found[name]['found'])
        self.assertRegex(found['CMake']['found'], r'version 3\.')
        for row in found.values():
            self.assertEqual(bool(row['loss']), row['state'] != 'present', row)
        text = self.succeed('doctor').out
        for name, row in found.items():
            self.assertRegex(text, rf'(?m)^{re.escape(name)} +{row["state"]}')

    def test_without_tools(self):
        for names, missing, code in (((), 'C++ compiler', 'WL0501'), (('c++',), 'CMake', 'WL0501'), (('c++', 'cmake'), 'MPI', None)):
            with self.subTest(missing):
                outcome, found = self.examine(env=self.path_of(*names))
                self.assertEqual(found[missing]['state'], 'missing')
                self.assertIn('install', found[missing]['loss'])
                self.assertEqual(outcome.code, 1 if code else 0)
                if code:
                    self.assertRegex(outcome.err, rf'\Awindlass: error: {re.escape(missing)} is missing: .* \[{code}\]\n\Z')

    def test_mpi_without_headers(self):
        found = self.examine(env=self.path_of('c++', 'cmake', 'mpirun'))[1]
        self.assertEqual(found['MPI']['state'], 'limited')
        self.assertIn('libopenmpi-dev', found['MPI']['loss'])

    def test_folder_of_programs(self):
        outcome, found = self.examine(env={'XDG_CACHE_HOME': '', 'HOME': ''})
        self.assertEqual((outcome.code, found['disk for programs']['state']), (1, 'missing'))
        found = self.examine(env={'XDG_CACHE_HOME': '/dev/shm/nothing/here'})[1]
        self.assertIn('/dev/shm/nothing/here/windlass', found['disk for programs']['found'])

    def test_variables(self):
        none = {name: '' for name in os.environ if name.startswith(('LD_', 'OPENBLAS_'))}
        found = self.examine(env=none)[1]
        self.assertEqual(found['library variables']['state'], 'present')
        found = self.examine(env={**none, 'LD_LIBRARY_PATH': '/nowhere', 'OPENBLAS_CORETYPE': 'Prescott', 'PMIX_RANK': '3', 'OMPI_MCA_btl': 'self'})[1]
        self.assertEqual(found['library variables']['found'], "LD_LIBRARY_PATH='/nowhere', OPENBLAS_CORETYPE='Prescott'")
        self.assertIn('PMIX_RANK', found['launcher variables']['found'])
        self.assertNotIn('OMPI_MCA_btl', found['launcher variables']['found'])

    def driver(self, result):
        source = self.folder / 'driver.cpp'
        source.write_text(DRIVER.replace('RESULT', str(result)))
        subprocess.run(['c++', '-shared', '-fPIC', source, '-o', self.folder / 'libcuda.so.1'], check=True)
        return {'LD_LIBRARY_PATH': str(self.folder)}

    def test_gpus(self):
        found = self.examine(env=self.driver(0))[1]
        self.assertEqual((found['GPUs']['state'], found['GPUs']['found'], found['GPUs']['loss']), ('present', 'First, 80 GiB; Second, 80 GiB', ''))

    def test_cudnn(self):
        source = self.folder / 'cudnn.cpp'
        source.write_text('extern "C" unsigned long cudnnGetVersion() { return 91900; }')
        subprocess.run(['c++', '-shared', '-fPIC', source, '-o', self.folder / 'libcudnn.so.9'], check=True)
        self.assertEqual(self.examine(env={'LD_LIBRARY_PATH': str(self.folder)})[1]['cuDNN']['found'], '9.19.0')

    def test_a_driver_that_does_not_answer(self):
        found = self.examine(env=self.driver(100))[1]
        self.assertEqual(found['GPUs']['state'], 'missing')
        self.assertIn('does not answer', found['GPUs']['loss'])


common.main()
