# The program driver: flags, data, parameters, the step loop, metrics, checkpoints.
set(WINDLASS_RT_PROGRAM_SOURCES
  arrays.cpp
  box.cpp
  checkpoint_files.cpp
  control.cpp
  data.cpp
  elements.cpp
  events.cpp
  file.cpp
  hash.cpp
  json.cpp
  manifest.cpp
  metrics.cpp
  numpy.cpp
  options.cpp
  parameters.cpp
  progress.cpp
  random.cpp
  rank_state.cpp
  run.cpp
  safetensors.cpp
  saving.cpp
  schedule.cpp
  setup.cpp
  signals.cpp
  trainer.cpp)
list(TRANSFORM WINDLASS_RT_PROGRAM_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
