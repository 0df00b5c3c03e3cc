/*
 * Where a recording goes, and what happens to what is there already.
 */
#ifndef SPOTTER_RECORD_OUTFILE_H
#define SPOTTER_RECORD_OUTFILE_H

#define OUTFILE_MAX 4096

/*
 * requested as it is, or, if it is NULL, run.spot: or run.2.spot and so on while another run writes to that. A
 * finished recording that is there is renamed to NAME.old. Anything else that is there (a live recording,
 * a file that is no recording) stays, and creating the new recording will fail and say so.
 */
void outfile_choose(const char *requested, char ret[OUTFILE_MAX]);

#endif
