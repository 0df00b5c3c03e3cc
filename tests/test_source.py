"""What holds for every file of the tree: its look, its first lines, what it may not mention, and that the
papers agree with each other and with the program's own tables.
"""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SPOTTER = Path(os.environ.get('SPOTTER', ROOT / 'build' / 'spotter'))
CLANG_FORMAT_MAJOR = '14'  # others lay some constructs out differently


def sources(language):
    out = subprocess.run([ROOT / 'tools/sources.sh', language], capture_output=True, text=True, check=True)
    return [ROOT / line for line in out.stdout.split()]


def texts():
    """Every text file that is the project's own."""
    skip_dirs = {'.git', 'build', '__pycache__', '.pytest_cache', 'node_modules'}
    for folder, dirs, names in os.walk(ROOT):
        dirs[:] = [d for d in dirs if d not in skip_dirs]
        for name in names:
            path = Path(folder, name)
            try:
                yield path, path.read_text(encoding='utf-8')
            except UnicodeDecodeError:
                continue


def relative(paths):
    return [str(p.relative_to(ROOT)) for p in paths]


def program(*arguments):
    if not os.access(SPOTTER, os.X_OK):
        pytest.skip(f'{SPOTTER} is not built')
    out = subprocess.run([SPOTTER, *arguments], capture_output=True, text=True, check=True,
                         stdin=subprocess.DEVNULL)
    return out.stdout


def commands():
    return re.findall(r'^  (\w[\w-]*) +\S', program('--help').split('Commands:')[1], re.MULTILINE)


def test_c_is_laid_out_by_clang_format():
    tool = shutil.which('clang-format')
    if not tool:
        pytest.skip('clang-format is not installed')
    version = subprocess.run([tool, '--version'], capture_output=True, text=True, check=True).stdout
    if not re.search(rf'version {CLANG_FORMAT_MAJOR}\.', version):
        pytest.skip(f'needs clang-format {CLANG_FORMAT_MAJOR}, this is {version.strip()}')
    wrong = [p for p in sources('c')
             if subprocess.run([tool, '--dry-run', '--Werror', p], capture_output=True,
                               check=False).returncode]
    assert not relative(wrong), 'run make format'


def test_every_file_says_what_it_is():
    opening = {'c': r'(// SPDX[^\n]*\n)?/\*', 'python': r'(#![^\n]*\n)?(# \w|""")', 'shell': r'#![^\n]*\n# \w'}
    wrong = [p for language, begin in opening.items() for p in sources(language)
             if p.stat().st_size and not re.match(begin, p.read_text(encoding='utf-8'))]
    assert not relative(wrong)


def test_shell_scripts_parse():
    for path in sources('shell'):
        shell = 'bash' if 'bash' in path.read_text(encoding='utf-8').splitlines()[0] else 'sh'
        subprocess.run([shell, '-n', path], check=True)


def test_no_file_names_a_place_on_somebodys_machine():
    place = re.compile(r'(?<![\w.$}])/(work|root|home/\w+|Users)/[\w.]')
    wrong = [f'{p.relative_to(ROOT)}: {place.search(text).group()}' for p, text in texts()
             if place.search(text)]
    assert not wrong


def test_lines_have_no_blanks_at_their_end():
    wrong = [p for p, text in texts()
             if p.suffix in ('.c', '.h', '.def', '.py', '.sh', '.md', '.build', '.txt')
             and re.search(r'[ \t]+$', text, re.MULTILINE)]
    assert not relative(wrong)


def test_links_between_papers_lead_somewhere():
    wrong = []
    for path, text in texts():
        if path.suffix != '.md':
            continue
        for target in re.findall(r'\]\(([^)#\s]+)[^)]*\)', text):
            if '://' not in target and not (path.parent / target).exists():
                wrong.append(f'{path.relative_to(ROOT)} -> {target}')
    assert not wrong


def test_every_package_is_explained():
    listed = subprocess.run([ROOT / 'tools/packages.sh', 'list', 'build', 'bpf', 'demo', 'test', 'lint'],
                            capture_output=True, text=True, check=True).stdout.split()
    paper = (ROOT / 'doc/dependencies.md').read_text(encoding='utf-8')
    assert not [p for p in listed if f'`{p}`' not in paper]


def test_changelog_begins_with_this_version():
    version = re.search(r"version: '([^']+)'", (ROOT / 'meson.build').read_text(encoding='utf-8'))[1]
    first = re.search(r'^## (\S+)', (ROOT / 'CHANGELOG.md').read_text(encoding='utf-8'), re.MULTILINE)[1]
    assert first == version


def test_readme_lists_the_commands():
    readme = (ROOT / 'README.md').read_text(encoding='utf-8')
    assert not [c for c in commands() if f'`spotter {c}' not in readme]


def test_man_pages_say_what_help_says():
    for command in commands():
        page = program('help', '--format', 'man', command).replace('\\-', '-').replace('\\e', '\\')
        shown = program(command, '--help')
        options = re.findall(r'^  (?:-\w, |    )(--[\w-]+)', shown.split('Options:')[1], re.MULTILINE)
        assert options
        assert not [o for o in options if o != '--help' and o not in page]
        for line in shown.split('Options:')[0].splitlines()[2:]:
            assert line.removeprefix('Usage: ').strip() in page


def test_man_pages_are_clean_troff():
    groff = shutil.which('groff')
    if not groff:
        pytest.skip('groff is not installed (Debian: groff-base)')
    for command in [None, *commands()]:
        page = program('help', '--format', 'man', *([command] if command else []))
        out = subprocess.run([groff, '-man', '-ww', '-z'], input=page, capture_output=True, text=True,
                             check=True)
        assert not out.stderr, command


def test_installed_pages_are_those_of_the_commands():
    build = SPOTTER.resolve().parent
    if not (build / 'doc').is_dir():
        pytest.skip('no man pages beside this program')
    made = {p.name for p in (build / 'doc').iterdir() if p.suffix == '.1'}
    assert made == {'spotter.1', *(f'spotter-{c}.1' for c in commands())}


def test_completion_is_bash():
    script = program('help', '--format', 'bash')
    subprocess.run(['bash', '-n'], input=script, text=True, check=True)
    ask = script + '\nCOMP_WORDS=(spotter "$1"); COMP_CWORD=1; _spotter; echo "${COMPREPLY[@]}"'
    out = subprocess.run(['bash', '-c', ask, 'bash', 're'], capture_output=True, text=True, check=True)
    assert out.stdout.split() == [c for c in commands() if c.startswith('re')]
