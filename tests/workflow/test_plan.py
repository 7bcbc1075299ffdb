"""What the workflow plans to do under each configuration, and what it refuses before any job starts."""

import re
from collections import Counter

from simfa.doctor import examine


def planned(text: str) -> Counter[str]:
    """Return how often each rule stands in the output of a dry run."""
    return Counter(re.findall(r"^(?:local)?rule (\w+):$", text, flags=re.MULTILINE))


def test_ci_plan_passes_through_every_bundled_rule(snakemake) -> None:
    done = snakemake("--dry-run")
    assert done.returncode == 0, done.stdout
    assert planned(done.stdout) == {
        "all": 1,
        "translate": 1,
        "log_info": 1,
        "simulate": 1,
        "record_timeline": 1,
        "perfetto_trace": 1,
        "simulate_measured_case": 4,
        "validate": 1,
        "figures": 1,
        "memory_curve": 6,
        "memory_figures": 1,
        "report": 1,
    }


def test_paper_plan_has_fifteen_predictions_on_each_preset_and_both_studies(snakemake) -> None:
    done = snakemake("--dry-run", "--printshellcmds", config="paper")
    assert done.returncode == 0, done.stdout
    assert planned(done.stdout)["predict"] == 30
    assert planned(done.stdout)["simulate_measured_case"] == 12
    for gpu in ("h800-sxm-paper", "h800-sxm"):
        assert f"predict --model llama3.1-405b --seqlen 6144 --gpu {gpu} " in done.stdout
    assert re.search(r"predict --model llama3.1-405b --seqlen 6144 --gpu h800-sxm-paper +--timeline 1", done.stdout)
    assert (planned(done.stdout)["ablation"], planned(done.stdout)["sensitivity"]) == (1, 1)
    assert re.search(r"simfa ablate +--max-seqlen 1024 --jobs 2 --quiet -o results/studies/ablation.json", done.stdout)
    assert "simfa sensitivity --model llama3-8b --seqlen 1024 --gpu h800-sxm --perturbation 0.2" in done.stdout
    shown = "--figures results/studies/ablation --figures results/studies/sensitivity"
    assert re.search(f"simfa report .*{shown}", done.stdout)


def test_default_plan_runs_no_study_and_a_study_takes_its_flags(snakemake) -> None:
    done = snakemake("--dry-run", config="config")
    assert done.returncode == 0, done.stdout
    assert not {"ablation", "sensitivity"} & planned(done.stdout).keys()
    chosen = "ablation={'cases': ['clean'], 'overlays': ['no-lrc', 'modulo-hash']}"
    done = snakemake("--dry-run", "--printshellcmds", "--config", chosen)
    assert done.returncode == 0, done.stdout
    assert planned(done.stdout)["ablation"] == 1
    assert re.search("ablate --cases clean +--overlay no-lrc --overlay modulo-hash --max-seqlen 1000000", done.stdout)


def test_slurm_profile_plans_the_same_jobs(snakemake, root_folder) -> None:
    done = snakemake("--dry-run", "--profile", str(root_folder / "workflow/profiles/slurm"))
    assert done.returncode == 0, done.stdout
    assert planned(done.stdout)["simulate_measured_case"] == 4
    assert re.search(r"resources: .*slurm_partition=batch", done.stdout)


def test_capture_on_a_gpu_is_refused_at_parse_time_without_one(snakemake) -> None:
    done = snakemake("--dry-run", "--config", "capture=gpu")
    missing = examine().capture_missing or ["FlashAttention-3 sources"]
    assert done.returncode == 1
    assert f"config capture is 'gpu' but this machine lacks {missing[0]}" in done.stdout
    assert planned(done.stdout) == {}


def test_auto_without_sources_uses_bundled_logs(snakemake) -> None:
    done = snakemake("--dry-run", "--config", "capture=auto")
    assert done.returncode == 0, done.stdout
    assert "capture" not in planned(done.stdout)


def test_exports_are_ingested(snakemake, tmp_path) -> None:
    (tmp_path / "ncu.csv").touch()
    done = snakemake("--dry-run", "--config", "exports=['ncu.csv']")
    assert done.returncode == 0, done.stdout
    assert planned(done.stdout)["ingest"] == 1


def test_exports_with_a_mapping_are_validated_too(snakemake, tmp_path) -> None:
    (tmp_path / "ncu.csv").touch()
    (tmp_path / "cases.toml").touch()
    done = snakemake("--dry-run", "--printshellcmds", "--config", "exports=['ncu.csv']", "mapping=cases.toml")
    assert done.returncode == 0, done.stdout
    assert (planned(done.stdout)["ingest"], planned(done.stdout)["validate_exports"]) == (1, 1)
    assert "validate --measured results/ingested.csv --mapping cases.toml" in done.stdout


def test_names_of_files_and_presets_may_have_blanks(snakemake, tmp_path) -> None:
    for name in ("my ncu.csv", "my cases.toml"):
        (tmp_path / name).touch()
    (tmp_path / "my part.toml").write_text('extends = "h100-sxm"')
    names = ("exports=['my ncu.csv']", "mapping='my cases.toml'", "gpu='my part.toml'")
    done = snakemake("--dry-run", "--printshellcmds", "--config", *names)
    assert done.returncode == 0, done.stdout
    for flags in ("ingest 'my ncu.csv' -o", "--mapping 'my cases.toml' --", "--gpu 'my part.toml' "):
        assert flags in done.stdout


def test_presets_given_by_path_are_inputs_with_what_they_extend(snakemake, tmp_path, root_folder) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/base.toml").write_text('extends = "h100-sxm"')
    (tmp_path / "parts/mine.toml").write_text('extends = "base.toml"')
    (tmp_path / "wide.toml").write_text("")
    own = tmp_path / "own.yaml"
    own.write_text(
        "gpu: parts/mine.toml\npredictions: {models: [llama3-8b], seqlens: [128]}\n"
        "ablation: {gpus: [parts/mine.toml], overlays: [wide.toml]}\n"
        "sensitivity: {shape: --model llama3-8b --seqlen 128, gpu: parts/mine.toml}\n"
    )
    files = ("--configfile", str(root_folder / "config/ci.yaml"), str(own))
    done = snakemake("--dry-run", "--printshellcmds", *files)
    assert done.returncode == 0, done.stdout
    jobs = dict(re.findall(r"^(?:local)?rule (\w+):\n((?: .*\n)+)", done.stdout, flags=re.MULTILINE))
    for rule in ("simulate", "record_timeline", "predict", "sensitivity"):
        assert re.search(r"input: .*parts/mine\.toml, parts/base\.toml\n", jobs[rule]), rule
    assert "input: parts/mine.toml, parts/base.toml, wide.toml\n" in jobs["ablation"]
    assert "predict --model llama3-8b --seqlen 128 --gpu parts/mine.toml --quiet" in jobs["predict"] + done.stdout
    assert "results/predictions/parts_mine.toml/llama3-8b-128" in jobs["predict"]

    (tmp_path / "parts_mine.toml").write_text('extends = "h100-sxm"')
    own.write_text("predictions: {models: [llama3-8b], seqlens: [128], gpus: [parts/mine.toml, parts_mine.toml]}\n")
    done = snakemake("--dry-run", *files)
    assert done.returncode == 1
    assert "parts/mine.toml, parts_mine.toml would share a folder; rename one of the files" in done.stdout
    for setting, message in [
        ("gpu=absent.toml", "config: absent.toml: cannot be read: No such file or directory"),
        ("gpu=h100", "config: preset 'h100' is unknown; did you mean h100-sxm?"),
        ("ablation={'overlays': ['no-lcr']}", "config: overlay 'no-lcr' is unknown; did you mean no-lrc?"),
    ]:
        done = snakemake("--dry-run", "--config", setting)
        assert (done.returncode, message in done.stdout) == (1, True), done.stdout


def test_mapping_without_exports_is_refused(snakemake) -> None:
    done = snakemake("--dry-run", "--config", "mapping=cases.toml")
    assert done.returncode == 1
    assert "config mapping: there are no exports to map" in done.stdout


def test_unknown_set_and_unknown_key_are_named(snakemake) -> None:
    done = snakemake("--dry-run", "--config", "measured_sets=['s99']")
    assert done.returncode == 1
    assert "config measured_sets: measured set 's99' is unknown; expected one of all, ncu-1500" in done.stdout
    done = snakemake("--dry-run", "--config", "gpus=h20")
    assert done.returncode == 1
    assert "'gpus' was unexpected" in done.stdout
    done = snakemake("--dry-run", "--config", "logs={'two words': {'shape': '', 'bundled': 'x'}}")
    assert done.returncode == 1
    assert "'two words' does not match" in done.stdout


def test_a_hopper_node_captures_and_measures_with_the_profilers_it_has(snakemake, hopper_node) -> None:
    hopper_node("nsys")
    done = snakemake("--dry-run", "--printshellcmds", "--config", "capture=gpu", "fa3_source=checkout")
    assert done.returncode == 0, done.stdout
    plan = planned(done.stdout)
    assert (plan["capture"], plan["profile_nsys"], plan["profile_ncu"], plan["ingest_profiled"]) == (1, 1, 0, 1)
    assert "capture --model llama3-8b --seqlen 512 --source checkout --profile nsys -o" in done.stdout
    assert "ingest results/profiled/llama3-8b-512.sqlite --kernel FlashAttnFwd --clock-control none" in done.stdout
    assert "ncu is not on PATH: the plain kernel is not measured with it" in done.stdout


def test_profilers_that_are_not_asked_for_are_not_used(snakemake, hopper_node) -> None:
    hopper_node("nsys", "ncu")
    done = snakemake("--dry-run", "--config", "capture=auto", "fa3_source=checkout", "profilers=[]")
    assert done.returncode == 0, done.stdout
    assert planned(done.stdout)["capture"] == 1
    assert not {"profile_nsys", "profile_ncu", "ingest_profiled"} & set(planned(done.stdout))
    done = snakemake("--dry-run", "--config", "capture=auto", "fa3_source=checkout", "profilers=[ncu]")
    assert (planned(done.stdout)["profile_nsys"], planned(done.stdout)["profile_ncu"]) == (0, 1)


def test_profilers_are_not_asked_for_without_a_gpu(snakemake) -> None:
    done = snakemake("--dry-run", "--config", "profilers=[ncu,nsys]")
    assert done.returncode == 0, done.stdout
    assert "not measured" not in done.stdout
