# The program driver: flags, data, parameters, the step loop, metrics, checkpoints. Appends to `sources`.
foreach(name
  action_graphs array_values arrays async_save box check_actions check_job check_run checkpoint_files config control data elements events file folder hash json kernel_report label_counter local_input manifest merged_input messages metrics named_values numpy operator_names
  options parameters placement program_files progress random rank_state record run run_lock safetensors samples save_parts saving schedule setup sha256_x86 signals staging start step_scalars timeline trainer)
  list(APPEND sources ${CMAKE_CURRENT_LIST_DIR}/${name}.cpp)
endforeach()
