/* A tool for NVTX that writes the names of ranges, and `end` where one ends, to the file that WINDLASS_RANGES names. */
#include <nvtx3/nvToolsExt.h>

#include <stdio.h>
#include <stdlib.h>

static FILE *file;

static int push(const char *name) {
  fprintf(file, "%s\n", name);
  fflush(file);
  return 0;
}

static int pop(void) {
  fprintf(file, "end\n");
  fflush(file);
  return 0;
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  const NvtxExportTableCallbacks *callbacks = (const NvtxExportTableCallbacks *)get_table(NVTX_ETID_CALLBACKS);
  NvtxFunctionTable functions = NULL;
  unsigned int size = 0;
  file = fopen(getenv("WINDLASS_RANGES"), "w");
  if (!file || !callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &functions, &size))
    return 0;
  *functions[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
  *functions[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
  return 1;
}
