# The lit suite: IR tests of single passes, run by windlass-opt and FileCheck.
import os

import lit.formats

config.name = 'windlass'
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = ['.mlir', '.test']
config.excludes = ['Inputs']
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.windlass_binary_dir, 'test')
config.environment['PATH'] = os.pathsep.join([config.windlass_tools_dir, config.llvm_tools_dir, os.environ['PATH']])
config.substitutions.append(('%python', config.python))
config.substitutions.append(('%source', config.windlass_source_dir))
config.substitutions.append(('%binary', config.windlass_binary_dir))
# Diagnostics must not change with the terminal or the language.
config.environment['LC_ALL'] = 'C'
